/** Commands about Functions that are deployed. */
import { type Command, Option } from "commander";
import { levelNamed, levels } from "../log-lines.ts";
import { jsonOutput } from "./json-output.ts";
import { suggesting } from "./suggestions.ts";
import {
  collect,
  count,
  duration,
  port,
  replicas,
  revision,
  seconds,
  secondsOrNone,
} from "./values.ts";

export function addFunctionCommands(program: Command): void {
  program
    .command("apply [files...]")
    .description("create or change what manifests describe, and follow Functions until they run")
    .option(
      "-f, --filename <file>",
      "file, directory or - for standard input (repeatable; default: ./config.yaml)",
      collect,
    )
    .option("-R, --recursive", "also the files in the folders of a directory")
    .option("--no-wait", "return as soon as the objects are stored")
    .option(
      "-t, --timeout <seconds>",
      "how long to follow a Function, also 90s or 5m; 0: as long as it takes",
      secondsOrNone,
      300,
    )
    .option("--force-conflicts", "take over fields that another manager owns")
    .option("--dry-run", "validate on the server, without storing anything")
    .addOption(
      suggesting(
        new Option("--onerror <what>", "nothing, or purge: delete what this command has created"),
        ["nothing", "purge"],
      ).default("nothing"),
    )
    .addOption(
      suggesting(
        new Option(
          "-o, --output <format>",
          "json or yaml: the objects as stored, with --dry-run as in the files; none: nothing",
        ),
        ["json", "yaml", "none"],
      ),
    )
    .addOption(new Option("-w, --watch", "accepted: Functions are followed anyway").hideHelp())
    .option("--json", "report the progress as objects, one a line, for programs")
    .action(async (files, options, command) =>
      (await import("../commands/apply.ts")).apply({
        ...command.optsWithGlobals(),
        ...options,
        filename: [...files, ...(options.filename ?? [])],
      }),
    );

  program
    .command("diff")
    .description("show what apply would change; the exit code is 1 if that is anything")
    .requiredOption("-f, --filename <file>", "file, directory or - (repeatable)", collect)
    .option("-R, --recursive", "also the files in the folders of a directory")
    .action(async (_options, command) =>
      (await import("../commands/diff.ts")).diff(command.optsWithGlobals()),
    );

  program
    .command("sync <name>")
    .description("write a deployed Function, with its APIRules and subscriptions, as a config.yaml")
    .option("-d, --dir <dir>", "directory to write to", ".")
    .addOption(
      suggesting(
        new Option("--schema-version <version>", "schema version of config.yaml: v0 or v1"),
        ["v0", "v1"],
      ).default("v0"),
    )
    .option("--force", "overwrite files")
    .action(async (name, _options, command) =>
      (await import("../commands/sync.ts")).sync(name, command.optsWithGlobals()),
    );

  program
    .command("eject <name>")
    .description("write a Function as plain manifests, with a Dockerfile and the runtime")
    .option("-d, --dir <dir>", "directory to write to (default: the Function's name)")
    .option(
      "--source <dir>",
      "directory with the code, if the Function's source is Git or a directory",
    )
    .option("--target-app-name <name>", "name of the Deployment and Service (default: the same)")
    .option("--force", "overwrite files")
    .action(async (name, _options, command) =>
      (await import("../commands/eject.ts")).eject(name, command.optsWithGlobals()),
    );

  program
    .command("debug <name>")
    .description("start a copy of a deployed Function with its debugger's port, reached from here")
    .option("-p, --port <port>", "port of the debugger here (default: 9229, Python: 5678)", port)
    .action(async (name, _options, command) =>
      (await import("../commands/debug.ts")).debug(name, command.optsWithGlobals()),
    );

  program
    .command("status")
    .description("show the cluster, how many Functions run, and why others do not")
    .addOption(jsonOutput())
    .option("--scrape-config", "print how Prometheus reads the metrics of this machine's platform")
    .option("--data-dir <dir>", "for --scrape-config: its data directory, if not .spry")
    .action(async (_options, command) =>
      (await import("../commands/status.ts")).status(command.optsWithGlobals()),
    );

  program
    .command("get [name]")
    .description("list Functions, or show one")
    .option("-A, --all-namespaces", "list Functions of all namespaces")
    .addOption(
      suggesting(
        new Option(
          "-o, --output <format>",
          "wide, name, json, yaml, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…",
        ),
        ["wide", "name", "json", "yaml", "jsonpath=", "custom-columns="],
      ),
    )
    .option("-w, --watch", "print changes until Ctrl-C")
    .option("-l, --selector <labels>", "only those with these labels, such as app=shop")
    .action(async (name, _options, command) =>
      (await import("../commands/get.ts")).get(name, command.optsWithGlobals()),
    );

  program
    .command("describe <name>")
    .description("show a Function's state, the reason for it, and what to do")
    .addOption(jsonOutput())
    .action(async (name, _options, command) =>
      (await import("../commands/describe.ts")).describe(name, command.optsWithGlobals()),
    );

  program
    .command("logs <name>")
    .description("print the output of a Function's instances")
    .option("-f, --follow", "keep printing new output, also that of new instances")
    .option("--tail <lines>", "only the last lines of each instance", count)
    .option("--since <time>", "only newer output: 30s, 5m, 2h", duration)
    .option(
      "--previous",
      "output of the runs that ended: on one machine the last three, on a cluster the last",
    )
    .option("--timestamps", "put the time before each line")
    .addOption(
      suggesting(
        new Option(
          "--level <level>",
          "only lines of this level and above: debug, info, warn, error",
        ).argParser(levelNamed),
        levels,
      ),
    )
    .option("--request <id>", "only lines that name a request (X-Request-Id)")
    .option("--json", "each line as an object, with the instance")
    .option("--build", "the output of the newest build instead")
    .action(async (name, _options, command) =>
      (await import("../commands/logs.ts")).logs(name, command.optsWithGlobals()),
    );

  program
    .command("invoke <name> [path]")
    .description("send a request to a Function and print the response")
    .option("-d, --data <body>", "request body; @file reads a file, @- standard input")
    .addOption(
      suggesting(
        new Option("-X, --method <method>", "HTTP method (default: GET, or POST with --data)"),
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
      ),
    )
    .option("-H, --header <header>", "request header, as in curl (repeatable)", collect)
    .addOption(new Option("-p, --path <path>", "the same as PATH").hideHelp())
    .option("-i, --include", "print status and headers too")
    .option("--event <type>", "send a CloudEvent of this type, with --data as its data")
    .option("--source <name>", "source of the event", "spry-invoke")
    .option("--timing", "print how long it took, on standard error")
    .action(async (name, path, _options, command) =>
      (await import("../commands/invoke.ts")).invoke(name, path, command.optsWithGlobals()),
    );

  program
    .command("delete [names...]")
    .description("delete Functions and everything that belongs to them")
    .option("-f, --filename <file>", "delete what manifests describe (repeatable)", collect)
    .option("-R, --recursive", "also the files in the folders of a directory")
    .option("-y, --yes", "delete without asking; required without a terminal")
    .option("--dry-run", "ask the server whether it would be deleted, and delete nothing")
    .option("--no-wait", "do not wait for the deletion")
    .addOption(new Option("--name <name>", "the same as NAMES").hideHelp())
    .action(async (names, { name }, command) =>
      (await import("../commands/delete.ts")).remove(
        name === undefined ? names : [...names, name],
        command.optsWithGlobals(),
      ),
    );

  program
    .command("history <name>")
    .description("list the versions of a Function: who changed what when, and which one serves")
    .addOption(suggesting(new Option("-o, --output <format>", "json or yaml"), ["json", "yaml"]))
    .action(async (name, _options, command) =>
      (await import("../commands/history.ts")).history(name, command.optsWithGlobals()),
    );

  program
    .command("rollback <name> [version]")
    .description(
      "roll a Function back to a version (default: the previous one), without a build; this makes a new version",
    )
    .option("--to <version>", "the same as VERSION", revision)
    .option("--no-wait", "return as soon as the Function is changed")
    .option("--timeout <seconds>", "how long to follow the Function", seconds, 300)
    .action(async (name, to, options, command) =>
      (await import("../commands/rollback.ts")).rollback(name, {
        ...command.optsWithGlobals(),
        ...options,
        ...(to !== undefined && { to: revision(to) }),
      }),
    );

  program
    .command("traffic <name> [shares]")
    .description("show or set which versions get which share of the requests: 3=90,latest=10")
    .addOption(jsonOutput())
    .option("--tag <version=tag>", "a host of its own for a version (repeatable)", collect)
    .action(async (name, shares, _options, command) =>
      (await import("../commands/traffic.ts")).traffic(name, shares, command.optsWithGlobals()),
    );

  program
    .command("scale <name> <replicas>")
    .description("set how many instances of a Function run")
    .action(async (name, instances, _options, command) =>
      (await import("../commands/scale.ts")).scale(
        name,
        replicas(instances),
        command.optsWithGlobals(),
      ),
    );

  program
    .command("open <name>")
    .description("open a Function in the browser")
    .action(async (name, _options, command) =>
      (await import("../commands/open.ts")).open(name, command.optsWithGlobals()),
    );
}
