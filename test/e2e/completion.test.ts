/** What shells offer while a command is typed. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { cleanEnvironment, functionManifest, root } from "../support/platform.ts";

const run = promisify(execFile);
const home = mkdtempSync(path.join(tmpdir(), "spry-completion-test-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
for (const name of ["one", "other dir", "$(touch bad)", ".hidden"])
  mkdirSync(path.join(home, "place", name), { recursive: true });
writeFileSync(path.join(home, "place", "manifest.yaml"), "");

const spry = path.join(root, "packages/cli/bin/spry.mjs");
/** A kubeconfig that does not exist. */
const none = path.join(home, "none");
const optionsFor = (kubeconfig: string) => ({
  cwd: path.join(home, "place"),
  env: { ...cleanEnvironment(), KUBECONFIG: kubeconfig, HOME: home },
});

async function complete(words: readonly string[], kubeconfig = none) {
  const args = [spry, "__complete", "--", ...words];
  const { stdout, stderr } = await run(process.execPath, args, optionsFor(kubeconfig)).catch(
    (error: unknown) => error as { stdout: string; stderr: string },
  );
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

describe("without a cluster", () => {
  const rows: [words: string[], offered: string[]][] = [
    [["roll"], ["rollback"]],
    [["lo"], ["logs"]],
    [["secrets", "i"], ["import"]],
    [["schedule", "r"], ["run"]],
    [
      ["logs", "--t"],
      ["--tail", "--timestamps"],
    ],
    [["logs", "--names"], ["--namespace"]],
    [["logs", "hello", "--level", "w"], ["warn"]],
    [
      ["init", "-r", "python"],
      ["python312", "python314"],
    ],
    [["init", "--template", "pa"], ["pair"]],
    [
      ["get", "-o", "js"],
      ["json", "jsonpath="],
    ],
    [["get", "--output=ya"], ["--output=yaml"]],
    // As bash splits it.
    [["get", "--output", "=", "ya"], ["yaml"]],
    [
      ["get", "--output", "="],
      ["wide", "name", "json", "yaml", "jsonpath=", "custom-columns="],
    ],
    [
      ["completion", ""],
      ["bash", "zsh", "fish"],
    ],
    [
      ["uninstall", "--functions", ""],
      ["keep", "delete"],
    ],
    [
      ["deploy", ""],
      ["$(touch bad)/", "one/", "other dir/"],
    ],
    [
      ["dev", "../place/o"],
      ["../place/one/", "../place/other dir/"],
    ],
    [["up", "--data-dir", ".h"], [".hidden/"]],
    [["test", "nowhere/"], []],
    [["logs", ""], []],
    [["logs", "-n", ""], []],
    [["nope", "x", ""], []],
    [["__"], []],
  ];
  test.each(rows)("%j", async (words, offered) => {
    expect(await complete(words)).toEqual(offered);
  });

  test("a cluster that does not answer delays nothing", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const file = path.join(home, "silent");
    const config = {
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
      contexts: [{ name: "c", context: { cluster: "c" } }],
    };
    writeFileSync(file, JSON.stringify(config));
    expect(await complete(["logs", ""], file)).toEqual([]);
  });
});

describe("with a platform", () => {
  const platform = enginePlatform(async (started) => {
    await started.k("create namespace aside");
    for (const name of ["hello", "help", "shop"])
      await started.spry(
        ["apply", "--no-wait", "-f", "-"],
        functionManifest(name, "exports.main = () => 1;"),
      );
    await started.spry(
      ["apply", "--no-wait", "-n", "aside", "-f", "-"],
      functionManifest("far", "exports.main = () => 1;", {}, { namespace: "aside" }),
    );
  });

  /** A busy machine may be too late for the first key, as it may be for a person. */
  const offers = (words: string[], offered: string[]) =>
    expect.poll(() => complete(words, platform.kubeconfig), { timeout: 30_000 }).toEqual(offered);

  test.each([
    "get",
    "describe",
    "logs",
    "delete",
    "scale",
    "invoke",
    "open",
    "rollback",
    "history",
    "traffic",
    "expose",
    "debug",
    "sync",
    "eject",
  ])("%s takes a Function", (command) => offers([command, "hel"], ["hello", "help"]));

  test("names, kinds, namespaces", async () => {
    await offers(["env", "set", "s"], ["shop"]);
    await offers(["logs", "function/he"], ["function/hello", "function/help"]);
    await offers(["get", "function", "sh"], ["shop"]);
    await offers(["delete", "hello", "fn/help", ""], ["shop"]);
    await offers(["logs", "-n", "asi"], ["aside"]);
    await offers(["logs", "-n", "aside", ""], ["far"]);
    await offers(["--namespace=aside", "describe", ""], ["far"]);
  });

  test("bash completes with the script, and runs nothing of what it offers", async () => {
    const offered = async (...words: string[]) => {
      const quoted = words.map((each) => `'${each}'`).join(" ");
      const stdout = await inShell(
        ["bash", "--norc", "-i"],
        `source <(spry completion bash); complete -p spry
COMP_WORDS=(spry ${quoted}); COMP_CWORD=${words.length}
_spry spry; printf '%s\\n' "\${COMPREPLY[@]}"`,
        platform.kubeconfig,
      );
      const [registered, ...lines] = stdout.trimEnd().split("\n");
      expect(registered).toBe("complete -F _spry spry");
      return lines;
    };
    expect(await offered("roll")).toEqual(["rollback"]);
    expect(await offered("logs", "--level", "w")).toEqual(["warn"]);
    expect(await offered("deploy", "")).toEqual(["$(touch bad)/", "one/", "other dir/"]);
    await expect.poll(() => offered("logs", "hel"), { timeout: 30_000 }).toEqual(["hello", "help"]);
    expect(readdirSync(path.join(home, "place"))).not.toContain("bad");
  });

  test("fish completes with the script", async (context) => {
    if (!isInstalled("fish")) context.skip("fish is not installed");
    const script = "spry completion fish | source; complete -C 'spry roll'";
    expect(await inShell(["fish"], script, platform.kubeconfig)).toMatch(/^rollback\t/);
  });

  test("zsh completes with the script", async (context) => {
    if (!isInstalled("zsh")) context.skip("zsh is not installed");
    // Typed into a terminal: without one, zsh completes nothing. Each reading waits for its pattern.
    const script = `zmodload zsh/zpty; zpty shell zsh -f -i
zpty -w shell 'PROMPT=; autoload -U compinit; compinit -u -D; source <(spry completion zsh); bindkey "^I" complete-word'
zpty -w shell 'report() { print -r -- "[$BUFFER]"; BUFFER=; }; zle -N report; bindkey "^X" report; print RE""ADY'
zpty -r shell said '*READY*'
for typed in 'spry roll' 'spry logs --level w'; do
  zpty -w -n shell "$typed"$'\\t\\C-x'
  zpty -r shell said "*\\[spry*\\]*"
  print -r -- "\${\${said##*\\[}%%\\]*}"
done`;
    const said = await inShell(["zsh", "-f"], script, platform.kubeconfig);
    expect(said).toBe("spry rollback \nspry logs --level warn \n");
  });
});

const isInstalled = (shell: string): boolean =>
  (process.env["PATH"] ?? "").split(":").some((place) => existsSync(path.join(place, shell)));

/** What a shell prints that finds the command as `spry`. */
async function inShell(shell: string[], script: string, kubeconfig: string): Promise<string> {
  const bin = path.join(home, "bin");
  mkdirSync(bin, { recursive: true });
  const program = `#!/bin/sh\nexec '${process.execPath}' '${spry}' "$@"\n`;
  writeFileSync(path.join(bin, "spry"), program, { mode: 0o755 });
  const { cwd, env } = optionsFor(kubeconfig);
  const [file = "", ...args] = shell;
  const { stdout } = await run(file, [...args, "-c", script], {
    cwd,
    env: { ...env, PATH: `${bin}:${process.env["PATH"]}` },
  });
  return stdout;
}
