// Starts the language server and hands it the documents that it reads. All the rest is the server's.

import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { serverCommand } from "./command";

const LANGUAGES = ["json", "jsonc", "python", "toml", "yaml"];
const WATCHED = "**/{*.json,*.py,eaglelint.toml,pyproject.toml}";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("eaglelint.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("eaglelint")) {
        void restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
  client = undefined;
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const configured = vscode.workspace.getConfiguration("eaglelint").get<string[]>("command") ?? [];
  const { command, args } = serverCommand(configured, folders, process.platform === "win32");
  client = new LanguageClient(
    "eaglelint",
    "eaglelint",
    { command, args: [...args] },
    {
      documentSelector: LANGUAGES.map((language) => ({ scheme: "file", language })),
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher(WATCHED) },
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    void vscode.window.showErrorMessage(
      `eaglelint could not be started with "${[command, ...args].join(" ")}": ${String(error)}. ` +
        "Install it with pip install 'eaglelint[lsp]', or set eaglelint.command.",
    );
  }
}
