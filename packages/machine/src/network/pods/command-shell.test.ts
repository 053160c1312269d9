import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { CommandShell } from "./command-shell.ts";

const shell = new CommandShell(300);
const dir = mkdtempSync(path.join(tmpdir(), "command-shell-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test("runs scripts in their order, in one process", async () => {
  const file = path.join(dir, "process");
  const first = shell.run(`sleep 0.05; echo $$ > ${file}-1`);
  const second = shell.run(`echo $$ > ${file}-2; cmp ${file}-1 ${file}-2`);
  await Promise.all([first, second]);
});

test.each([
  ["ends at the first command that fails", `echo bad >&2; false; echo more`, /^bad$/],
  ["says its exit code, where it says nothing", "exit 3", /^exit code 3$/],
  ["has no input", "read -r line", /^exit code 1$/],
  ["may have its own input", `cat <<'END'\nsome $text\nEND\nfalse`, /^some \$text$/],
  ["may be no script at all", "( ; fi", /[Ss]yntax error/],
  ["may end the shell", "kill -9 $$", /^the shell has ended$/],
  ["exceeds its time limit", "sleep 5", /^it took longer than 0.3 s$/],
  ["may say much", `head -c 1000000 /dev/zero | tr '\\0' 'x'; false`, /^x{10000}/],
])("a script that fails %s", async (_, script, problem) => {
  const failing = shell.run(script);
  const next = shell.run("true");
  await expect(failing).rejects.toThrow(problem);
  await next;
});

test("ends after its last script", async () => {
  const file = path.join(dir, "made");
  const own = new CommandShell();
  const last = own.run(`sleep 0.1; echo $$ > ${file}`);
  own.close();
  await last;
  expect(existsSync(file)).toBe(true);
});
