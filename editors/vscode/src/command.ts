// Which command starts the server: the user's own, the workspace's virtual environment's, or the search path's.

import { existsSync } from "node:fs";
import { join } from "node:path";

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** A command for these settings and folders; `exists` is replaced in tests. */
export function serverCommand(
  configured: readonly string[],
  folders: readonly string[],
  windows: boolean,
  exists: (path: string) => boolean = existsSync,
): Command {
  const [own, ...ownArguments] = configured;
  if (own !== undefined) {
    return { command: own, args: ownArguments };
  }
  const inside = windows ? ["Scripts", "eaglelint.exe"] : ["bin", "eaglelint"];
  for (const folder of folders) {
    for (const environment of [".venv", "venv"]) {
      const candidate = join(folder, environment, ...inside);
      if (exists(candidate)) {
        return { command: candidate, args: ["lsp"] };
      }
    }
  }
  return { command: "eaglelint", args: ["lsp"] };
}
