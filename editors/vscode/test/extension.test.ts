// The built extension in a stand-in for VS Code: it starts the server that the settings name, for the right documents.

import assert from "node:assert/strict";
import Module from "node:module";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const BUILT = resolve("dist/extension.js");
const MANIFEST = JSON.parse(readFileSync("package.json", "utf-8"));

/** The editor's interface: what is known of it, events that never come, and for the rest any class or function. */
function standIn(known: Record<string | symbol, unknown> = {}): any {
  const made = Object.assign(function () {}, { __esModule: true }, known) as unknown as Record<string | symbol, unknown>;
  const never = () => ({ dispose() {} });
  return new Proxy(made, {
    get: (target, name) => (name in target ? target[name] : /^on[A-Z]/.test(String(name)) ? never : standIn()),
  });
}

test("activation starts the configured server and says so when it cannot", async () => {
  const shown: string[] = [];
  const commands: string[] = [];
  const watched: string[] = [];
  class EventEmitter {
    event = () => ({ dispose() {} });
    fire() {}
    dispose() {}
  }
  const known: Record<string, unknown> = {
    EventEmitter,
    Disposable: class {},
    version: "1.91.0",
    env: { appName: "a stand-in", language: "en" },
    commands: { registerCommand: (name: string) => commands.push(name) },
    window: standIn({
      showErrorMessage: (text: string) => shown.push(text),
      createOutputChannel: () => ({ append() {}, appendLine() {}, show() {}, dispose() {} }),
    }),
    workspace: standIn({
      textDocuments: [],
      notebookDocuments: [],
      workspaceFolders: [{ uri: { fsPath: "/project" } }],
      getConfiguration: () => ({ get: () => ["/no/such/eaglelint", "lsp"] }),
      createFileSystemWatcher: (pattern: string) => watched.push(pattern),
    }),
  };
  const vscode = standIn(known);
  const load = (Module as unknown as { _load: (...words: unknown[]) => unknown })._load;
  (Module as unknown as { _load: unknown })._load = (request: string, ...rest: unknown[]) =>
    request === "vscode" ? vscode : load(request, ...rest);
  const extension = Module.createRequire(import.meta.url)(BUILT);
  await extension.activate({ subscriptions: [] });
  assert.deepEqual(commands, MANIFEST.contributes.commands.map((row: { command: string }) => row.command));
  assert.match(watched[0] ?? "", /eaglelint\.toml/);
  const ours = shown.filter((text) => text.includes('could not be started with "/no/such/eaglelint lsp"'));
  assert.equal(ours.length, 1, shown.join("\n"));
});
