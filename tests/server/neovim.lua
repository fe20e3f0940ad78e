-- Opens a config with the server attached, writes down what Neovim shows and the references of the key at the fault, mends
-- the text, and writes down what is left.
local out, command = vim.env.EAGLELINT_OUT, vim.fn.json_decode(vim.env.EAGLELINT_COMMAND)
local told = {}
local client = vim.lsp.start_client({ name = "eaglelint", cmd = command, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, client)
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
told.faulty = vim.diagnostic.get(0)
local row = told.faulty[1].lnum
local column = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]:find("eagle_aux_hidden_state_layer_ids", 1, true)
local answers = vim.lsp.buf_request_sync(0, "textDocument/references", {
  textDocument = vim.lsp.util.make_text_document_params(),
  position = { line = row, character = column },
  context = { includeDeclaration = true },
}, 60000)
for _, answer in pairs(answers or {}) do told.life = answer.result end
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
for number, line in ipairs(lines) do
  lines[number] = line:gsub("%[%-1, 2, 30%]", "[2, 30, 58]")
end
vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
vim.wait(60000, function() return #vim.diagnostic.get(0) == 0 end, 50)
told.mended = vim.diagnostic.get(0)
for _, row in ipairs(told.faulty) do row.user_data = nil end
vim.fn.writefile({ vim.fn.json_encode(told) }, out)
vim.cmd("qall!")
