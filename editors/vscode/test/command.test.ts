// Which server is started.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serverCommand } from "../src/command";

test("the user's own command comes first", () => {
  assert.deepEqual(serverCommand(["uvx", "eaglelint", "lsp"], ["/p"], false, () => true), {
    command: "uvx",
    args: ["eaglelint", "lsp"],
  });
});

test("the virtual environment of a folder comes before the search path", () => {
  const exists = (path: string) => path === "/second/venv/bin/eaglelint";
  assert.deepEqual(serverCommand([], ["/first", "/second"], false, exists), {
    command: "/second/venv/bin/eaglelint",
    args: ["lsp"],
  });
  assert.deepEqual(serverCommand([], ["/first"], false, exists), { command: "eaglelint", args: ["lsp"] });
});

test("on Windows an environment keeps its programs in Scripts", () => {
  const found = serverCommand([], ["/p"], true, (path) => path.includes("Scripts"));
  assert.match(found.command, /\.venv.Scripts.eaglelint\.exe$/);
});
