/** Commands about a directory. */
import { type Command, Option } from "commander";
import { suggesting } from "./suggestions.ts";
import { collect, port, seconds } from "./values.ts";

/** Of those that a new Function may have. */
const runtimeNames = async (): Promise<string[]> => {
  const { runtimes } = await import("@spry/function");
  return runtimes.filter(({ deprecated }) => !deprecated).map(({ name }) => name);
};

export function addDirectoryCommands(program: Command): void {
  program
    .command("init [dir]")
    .description("create a directory with a Function")
    .addOption(
      suggesting(
        new Option("-r, --runtime <name>", "nodejs22, nodejs24, nodejs26, python312 or python314"),
        runtimeNames,
      ),
    )
    .addOption(
      suggesting(
        new Option("-t, --template <name>", "kind of handler, see --list"),
        async () => (await import("../commands/init.ts")).templateNames,
      ),
    )
    .option("--name <name>", "name of the Function (default: the directory's)")
    .option("--list", "list the templates")
    .option("--force", "overwrite files")
    .option("--vscode", "also VS Code's settings; where code is already, only files for VS Code")
    .option("--from <url>", "begin with a copy of a Git repository's files")
    .option("--url <url>", "write a config.yaml that builds from a Git repository")
    .option("--reference <name>", "branch, tag or commit of the repository (default: main)")
    .option("--base-dir <dir>", "folder of the repository (default: its root)")
    .addOption(
      suggesting(
        new Option("--schema-version <version>", "write a config.yaml (v0 or v1), not a spry.yaml"),
        ["v0", "v1"],
      ),
    )
    .option("--runtime-image-override <image>", "base image for the config.yaml")
    .addOption(new Option("-d, --dir <dir>", "the same as DIR").hideHelp())
    .addOption(new Option("--repository-name <name>", "accepted without an effect").hideHelp())
    .action(async (dir, _options, command) =>
      (await import("../commands/init.ts")).init(dir, command.optsWithGlobals()),
    );

  program
    .command("dev [dirs...]")
    .description("run directories as on the platform, and the new code at each save")
    .option("--function <name>", "only this one of several in spry.yaml (repeatable)", collect)
    .option(
      "-p, --port <port>",
      "port on 127.0.0.1, and those after it for several; 0: any free one (default: 3000, or a free one)",
      port,
    )
    .option("--inspect [port]", "open the debugger's port (Node.js: 9229, Python: 5678)")
    .option(
      "--inspect-brk [port]",
      "like --inspect, and wait for a debugger before the code is loaded",
    )
    .option(
      "--neighbour <name=url>",
      "where http://NAME.NAMESPACE.svc.cluster.local leads (repeatable)",
      collect,
    )
    .option(
      "--allow-host <name>",
      "answer requests for this host, too: a tunnel's, for example (repeatable)",
      collect,
    )
    .option("--json", "report what happens as objects, one a line, for programs")
    .addOption(new Option("-l, --local", "accepted: it always runs here").hideHelp())
    .action(async (dirs, _options, command) =>
      (await import("../commands/dev.ts")).dev(dirs, command.optsWithGlobals()),
    );

  program
    .command("run")
    .description("run the directory of a config.yaml on port 8080 (see dev for more)")
    .option("-f, --filename <file>", "the config.yaml (default: ./config.yaml)")
    .option("-d, --source-dir <dir>", "the directory (default: that of the file)")
    .option("-p, --port <port>", "port on 127.0.0.1", port, 8080)
    .option("--container-name <name>", "accepted without an effect")
    .option("--detach", "return once it answers, and leave it running")
    .option("--debug", "open the debugger's port (Node.js: 9229, Python: 5678)")
    .option("--hot-deploy", "accepted: new code is always loaded at each save")
    .action(async (_options, command) =>
      (await import("../commands/run.ts")).run(command.optsWithGlobals()),
    );

  program
    .command("import <file>")
    .description(
      "write a spry.yaml from a func.yaml, stack.yml, config.yaml, serverless.yml or template of AWS SAM",
    )
    .option("--force", "overwrite a spry.yaml")
    .action(async (file, options) =>
      (await import("../commands/import.ts")).importConfig(file, options),
    );

  program
    .command("test [dir] [args...]")
    .description(
      "run a directory, and its tests against it (its address: SPRY_URL); -- ARGS are passed on",
    )
    .action(async (dir, args) => (await import("../commands/test.ts")).test(dir ?? ".", args));

  program
    .command("deploy [dirs...]")
    .description("deploy directories as Functions, and follow them until they run")
    .option("--function <name>", "only this one of several in spry.yaml (repeatable)", collect)
    .option("--name <name>", "name of the Function (default: spry.yaml's, or the directory's)")
    .option("--no-wait", "return as soon as the Function is stored")
    .option("--timeout <seconds>", "how long to follow the Function", seconds, 300)
    .option("--force-conflicts", "take over fields that another manager owns")
    .option("--registry <url>", "where this machine reaches the cluster's registry")
    .option(
      "-y, --yes",
      "replace a Function that came from a directory of another name without asking",
    )
    .option("--json", "report the progress as objects, one a line, for programs")
    .action(async (dirs, _options, command) =>
      (await import("../commands/deploy.ts")).deploy(dirs, command.optsWithGlobals()),
    );

  program
    .command("build <dir>")
    .description("build a Function's image from a directory, as the platform does")
    .requiredOption("-t, --tag <image>", "name of the image: REGISTRY/NAME:TAG")
    .addOption(
      suggesting(new Option("--runtime <name>", "runtime").default("nodejs24"), runtimeNames),
    )
    .option(
      "--base <image>",
      "image with interpreter and runtime: a name, oci:DIR or oci-archive:FILE (default: this machine's own)",
    )
    .addOption(new Option("--push", "push it to its registry (default)").conflicts("output"))
    .option("--registry-ca <file>", "certificate of the registry's private authority")
    .option("-o, --output <dir>", "write it to an OCI layout directory, without a registry")
    .action(async (dir, options) => (await import("../commands/build.ts")).build(dir, options));
}
