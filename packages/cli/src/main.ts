/** Program: the `spry` command. Each command's code is loaded only when it is the one asked for. */
import { Command, Option } from "commander";
import { messageOf, quantityValue, StatusError } from "@spry/kube";
import { sandboxKinds } from "./sandbox-kinds.ts";
import { UserError } from "./user-error.ts";
import { version } from "./version.ts";

const port = (text: string): number => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= 65535) return value;
  throw new UserError(
    `${text} is not a valid port`,
    "use a number from 0 (any free port) to 65535",
  );
};
const revision = (text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UserError(
    `${text} is not a valid number of a revision`,
    "`spry history FUNCTION` lists them",
  );
};
const bytes = (text: string): number => {
  try {
    const value = quantityValue(text);
    if (value > 0) return value;
  } catch {
    // Said below.
  }
  throw new UserError(
    `${text} is not a valid size`,
    "use a Kubernetes quantity, such as 500Mi or 20Gi",
  );
};
/** A positive number; others are refused with the option's purpose in the message. */
const seconds = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw new UserError(`${text} is not a number of seconds`, "write it as in --timeout 60");
};
/** Seconds of a duration such as 90, 45s, 5m or 2h. */
const duration = (text: string): number => {
  const [, amount, unit = "s"] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  const factor = { s: 1, m: 60, h: 3600, d: 86_400 }[unit] ?? 1;
  if (amount !== undefined && Number(amount) > 0) return Number(amount) * factor;
  throw new UserError(`${text} is not a duration`, "write it as 30s, 5m, 2h or 1d");
};
const count = (text: string): number => {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UserError(`${text} is not a number`, "use 0, 1, 2, …");
};
const collect = (value: string, all: string[] = []): string[] => [...all, value];

const program = new Command("spry")
  .description("Functions on Kubernetes, or on one machine with no cluster")
  .version(version)
  .option(
    "--kubeconfig <file>",
    "which cluster to talk to (default: $KUBECONFIG, .spry/kubeconfig, ~/.kube/config)",
  )
  .option("-n, --namespace <name>", "namespace (default: the kubeconfig's, or default)")
  .showHelpAfterError("(see spry --help)");

program
  .command("init [dir]")
  .description("create a directory with a Function")
  .option("-r, --runtime <name>", "nodejs22, nodejs24, nodejs26, python312 or python314")
  .option("-t, --template <name>", "kind of handler, see --list")
  .option("--name <name>", "name of the Function (default: the directory's)")
  .option("--list", "list the templates")
  .option("--force", "overwrite files")
  .action(async (dir, options) => (await import("./commands/init.ts")).init(dir ?? ".", options));

program
  .command("dev [dir]")
  .description("run a directory as on the platform, and the new code at each save")
  .option(
    "-p, --port <port>",
    "port on 127.0.0.1, 0: any free one (default: 3000, or a free one)",
    port,
  )
  .option("--inspect [port]", "open the debugger's port (Node.js: 9229, Python: 5678)")
  .option("--inspect-brk [port]", "the same, and wait for a debugger before the code is loaded")
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
  .action(async (dir, _options, command) =>
    (await import("./commands/dev.ts")).dev(dir ?? ".", command.optsWithGlobals()),
  );

program
  .command("deploy [dir]")
  .description("make a directory a Function, and follow it until it runs")
  .option("--name <name>", "name of the Function (default: spry.yaml's, or the directory's)")
  .option("--no-wait", "return as soon as the Function is stored")
  .option("--timeout <seconds>", "how long to follow the Function", seconds, 300)
  .option("--force-conflicts", "take over fields that another manager owns")
  .option("--registry <url>", "where this machine reaches the cluster's registry")
  .action(async (dir, _options, command) =>
    (await import("./commands/deploy.ts")).deploy(dir ?? ".", command.optsWithGlobals()),
  );

program
  .command("up")
  .description("run the whole platform on this machine until Ctrl-C")
  .option("--data-dir <dir>", "directory for all data", ".spry")
  .option("--api-port <port>", "port of the Kubernetes API", port, 6443)
  .option("--gateway-port <port>", "port on which Functions are called", port, 8080)
  .option("--https-port <port>", "port of HTTPS, for APIRules (default: 8443, or a free one)", port)
  .option(
    "--publisher-port <port>",
    "port at which events are published (default: 8082, or a free one)",
    port,
  )
  .option("--webhook-port <port>", "port for webhooks of Git servers, 0: any free one", port, 0)
  .option("--registry-port <port>", "port of the image registry", port, 5000)
  .addOption(
    new Option("--registry-quota <size>", "size limit of the image registry")
      .argParser(bytes)
      .default(bytes("20Gi"), "20Gi"),
  )
  .addOption(
    new Option(
      "--sandbox <kind>",
      "how Functions run: in OCI containers, or as processes; auto takes the stronger one that works here",
    )
      .choices(sandboxKinds)
      .default("auto"),
  )
  .option("--verify", "check everything in the data directory first (see spry doctor)")
  .option("--no-example", "do not apply examples/hello at the first start")
  .action(async (options) => (await import("./commands/up.ts")).up(options));

program
  .command("down")
  .description("stop the platform of a data directory, or end what it left running after a crash")
  .option("--data-dir <dir>", "the data directory", ".spry")
  .action(async (options) => (await import("./commands/down.ts")).down(options));

program
  .command("trust")
  .description(
    "how this system trusts the certificates of exposed hosts: prints the authority's file",
  )
  .option("--data-dir <dir>", "the data directory", ".spry")
  .option("--install", "add it to the system's store (asks for the administrator's password)")
  .action(async (options) => (await import("./commands/trust.ts")).trust(options));

program
  .command("doctor")
  .description("check everything in a data directory: objects, certificates, images by digest")
  .option("--data-dir <dir>", "the data directory", ".spry")
  .action(async (options) => (await import("./commands/doctor.ts")).doctor(options));

const events = program.command("events").description("publish, watch and replay events");
events
  .command("publish")
  .description("publish a CloudEvent; prints its id")
  .requiredOption("--type <type>", "type of the event: order.created.v1")
  .requiredOption("--source <source>", "source of the event: shop")
  .option("-d, --data <text>", "data: JSON or text, @FILE reads a file, @- standard input")
  .option("--id <id>", "id of the event (default: a new one)")
  .option("--attribute <name=value>", "another attribute (repeatable)", collect)
  .option("--url <url>", "address of the publisher (default: the platform's)")
  .action(async (_options, command) =>
    (await import("./commands/events.ts")).publish(command.optsWithGlobals()),
  );
events
  .command("list")
  .description("what waits for each Subscription of a namespace")
  .option("-o, --output <format>", "json")
  .action(async (_options, command) =>
    (await import("./commands/events.ts")).list(command.optsWithGlobals()),
  );
events
  .command("tail")
  .description("print the events of the whole cluster as they are accepted, a line of JSON each")
  .option("--after <position>", "begin after this position (default: with the next event)", count)
  .option("--type <type>", "of this type only")
  .option("--source <source>", "of this source only")
  .option("--once", "print what there is and end")
  .action(async (_options, command) =>
    (await import("./commands/events.ts")).tail(command.optsWithGlobals()),
  );
events
  .command("replay <subscription>")
  .description("deliver events to a Subscription again, from a time or a position on")
  .option("--from <time>", "a time of RFC 3339, or a duration such as 30m: so long ago")
  .option("--position <position>", "the position of the first event", count)
  .action(async (name, _options, command) =>
    (await import("./commands/events.ts")).replay(name, command.optsWithGlobals()),
  );

const dlq = program.command("dlq").description("dead letters: events that could not be delivered");
dlq
  .command("list <subscription>")
  .description("dead letters of a Subscription")
  .option("-o, --output <format>", "json")
  .action(async (name, _options, command) =>
    (await import("./commands/dlq.ts")).list(name, command.optsWithGlobals()),
  );
dlq
  .command("show <subscription> <id>")
  .description("one dead letter as JSON: the event, and the last response")
  .action(async (name, id, _options, command) =>
    (await import("./commands/dlq.ts")).show(name, id, command.optsWithGlobals()),
  );
for (const [verb, description] of [
  ["redrive", "deliver dead letters again"],
  ["discard", "remove dead letters for good"],
] as const) {
  dlq
    .command(`${verb} <subscription> [ids...]`)
    .description(description)
    .option("--all", "all of the Subscription")
    .action(async (name, ids, _options, command) =>
      (await import("./commands/dlq.ts")).move(verb, name, ids, command.optsWithGlobals()),
    );
}

const calls = program.command("async").description("calls whose clients do not wait for them");
calls
  .command("list")
  .description("calls of a namespace, the latest last")
  .option("-o, --output <format>", "json")
  .action(async (_options, command) =>
    (await import("./commands/async.ts")).list(command.optsWithGlobals()),
  );
calls
  .command("get <id>")
  .description("one call with its result, as JSON")
  .action(async (id, _options, command) =>
    (await import("./commands/async.ts")).get(id, command.optsWithGlobals()),
  );
calls
  .command("cancel <id>")
  .description("cancel a call that has not ended")
  .action(async (id, _options, command) =>
    (await import("./commands/async.ts")).cancel(id, command.optsWithGlobals()),
  );
program
  .command("schedule")
  .description("schedules of Functions")
  .command("run <function> <schedule>")
  .description("call a Function as one of its schedules does, now; prints the call's id")
  .action(async (name, schedule, _options, command) =>
    (await import("./commands/async.ts")).runSchedule(name, schedule, command.optsWithGlobals()),
  );

program
  .command("backup [file]")
  .description("save the platform of a data directory, running or not, to one file (- : stdout)")
  .option("--data-dir <dir>", "the data directory", ".spry")
  .action(async (file, options) => (await import("./commands/backup.ts")).backup(file, options));

program
  .command("restore <file>")
  .description("replace a data directory with a backup (- : stdin)")
  .option("--data-dir <dir>", "the data directory", ".spry")
  .option("--force", "move the directory's content aside")
  .action(async (file, options) => (await import("./commands/restore.ts")).restore(file, options));

program
  .command("build <dir>")
  .description("build a Function's image from a directory, as the platform does")
  .requiredOption("-t, --tag <image>", "name of the image: REGISTRY/NAME:TAG")
  .option("--runtime <name>", "runtime", "nodejs24")
  .option(
    "--base <image>",
    "image with interpreter and runtime: a name, oci:DIR or oci-archive:FILE (default: this machine's own)",
  )
  .addOption(new Option("--push", "push it to its registry (default)").conflicts("output"))
  .option("-o, --output <dir>", "write it to an OCI layout directory, without a registry")
  .action(async (dir, options) => (await import("./commands/build.ts")).build(dir, options));

program
  .command("apply")
  .description("create or change what manifests describe, and follow Functions until they run")
  .requiredOption(
    "-f, --filename <file>",
    "file, directory or - for standard input (repeatable)",
    collect,
  )
  .option("-R, --recursive", "also the files in the folders of a directory")
  .option("--no-wait", "return as soon as the objects are stored")
  .option("--timeout <seconds>", "how long to follow a Function", seconds, 300)
  .option("--force-conflicts", "take over fields that another manager owns")
  .option("--dry-run", "validate on the server, without storing anything")
  .action(async (options, command) =>
    (await import("./commands/apply.ts")).apply({ ...command.optsWithGlobals(), ...options }),
  );

program
  .command("get [name]")
  .description("list Functions, or show one")
  .option("-A, --all-namespaces", "in every namespace")
  .option("-o, --output <format>", "wide, name, json, yaml or jsonpath=TEMPLATE")
  .option("-w, --watch", "print changes until Ctrl-C")
  .option("-l, --selector <labels>", "only those with these labels, such as app=shop")
  .action(async (name, _options, command) =>
    (await import("./commands/get.ts")).get(name, command.optsWithGlobals()),
  );

program
  .command("describe <name>")
  .description("show a Function's state, why it is so, and what to do")
  .action(async (name, _options, command) =>
    (await import("./commands/describe.ts")).describe(name, command.optsWithGlobals()),
  );

program
  .command("logs <name>")
  .description("print the output of a Function's instances")
  .option("-f, --follow", "keep printing new output, also that of new instances")
  .option("--tail <lines>", "only the last lines of each instance", count)
  .option("--since <time>", "only newer output: 30s, 5m, 2h", duration)
  .option("--previous", "of the containers before the last restart")
  .option("--timestamps", "put the time before each line")
  .option("--build", "the output of the newest build instead")
  .action(async (name, _options, command) =>
    (await import("./commands/logs.ts")).logs(name, command.optsWithGlobals()),
  );

program
  .command("invoke <name>")
  .description("send a request to a Function and print the response")
  .option("-d, --data <body>", "request body; @file reads a file, @- standard input")
  .option("-X, --method <method>", "HTTP method (default: GET, or POST with --data)")
  .option("-H, --header <header>", "request header, as in curl (repeatable)", collect)
  .option("-p, --path <path>", "path and query", "/")
  .option("-i, --include", "print status and headers too")
  .action(async (name, _options, command) =>
    (await import("./commands/invoke.ts")).invoke(name, command.optsWithGlobals()),
  );

program
  .command("delete [names...]")
  .description("delete Functions and everything that belongs to them")
  .option("-f, --filename <file>", "delete what manifests describe (repeatable)", collect)
  .option("--no-wait", "do not wait for the deletion")
  .action(async (names, _options, command) =>
    (await import("./commands/delete.ts")).remove(names, command.optsWithGlobals()),
  );

program
  .command("history <name>")
  .description("list the revisions of a Function: who changed what when, and which one serves")
  .option("-o, --output <format>", "json or yaml")
  .action(async (name, _options, command) =>
    (await import("./commands/history.ts")).history(name, command.optsWithGlobals()),
  );

program
  .command("rollback <name>")
  .description("return a Function to an earlier revision, without a build, as a new revision")
  .option("--to <revision>", "a number of spry history (default: the one before)", revision)
  .option("--no-wait", "return as soon as the Function is changed")
  .option("--timeout <seconds>", "how long to follow the Function", Number, 300)
  .action(async (name, options, command) =>
    (await import("./commands/rollback.ts")).rollback(name, {
      ...command.optsWithGlobals(),
      ...options,
    }),
  );

program
  .command("traffic <name> [shares]")
  .description("show or set which revisions get which share of the requests: 3=90,latest=10")
  .option("--tag <revision=tag>", "a host of its own for a revision (repeatable)", collect)
  .action(async (name, shares, _options, command) =>
    (await import("./commands/traffic.ts")).traffic(name, shares, command.optsWithGlobals()),
  );

program
  .command("scale <name> <replicas>")
  .description("run so many instances")
  .action(async (name, replicas, _options, command) =>
    (await import("./commands/scale.ts")).scale(name, count(replicas), command.optsWithGlobals()),
  );

program
  .command("open <name>")
  .description("open a Function in the browser")
  .action(async (name, _options, command) =>
    (await import("./commands/open.ts")).open(name, command.optsWithGlobals()),
  );

const env = program.command("env").description("a Function's environment variables");
env
  .command("list <name>")
  .description("list them; values from Secrets are not shown")
  .action(async (name, _options, command) =>
    (await import("./commands/env.ts")).listEnv(name, command.optsWithGlobals()),
  );
env
  .command("set <name> <variables...>")
  .description("set variables (NAME=VALUE) or remove them (NAME-)")
  .action(async (name, variables, _options, command) =>
    (await import("./commands/env.ts")).setEnv(name, variables, command.optsWithGlobals()),
  );

const secrets = program.command("secrets").description("Secrets that Functions use");
secrets
  .command("list")
  .description("list Secrets and their keys; values are not shown")
  .action(async (_options, command) =>
    (await import("./commands/secrets.ts")).listSecrets(command.optsWithGlobals()),
  );
secrets
  .command("set <secret> <keys...>")
  .description("set keys: KEY=VALUE, KEY=@FILE, or KEY to read standard input")
  .action(async (secret, keys, _options, command) =>
    (await import("./commands/secrets.ts")).setSecrets(secret, keys, command.optsWithGlobals()),
  );
secrets
  .command("import <secret> <file>")
  .description("set all keys of a .env file")
  .action(async (secret, file, _options, command) =>
    (await import("./commands/secrets.ts")).importSecrets(secret, file, command.optsWithGlobals()),
  );

program
  .command("expose <name>")
  .description("give a Function a public HTTPS host, and say who may call it: writes an APIRule")
  .option(
    "--host <host>",
    "a label in the gateway's domain, or a domain name (repeatable; default: the Function's name)",
    collect,
  )
  .option(
    "--gateway <namespace/name>",
    "the Gateway with the host's certificate",
    "kyma-system/kyma-gateway",
  )
  .option("--path <path>", "which paths: exact, with {*} and {**}, or /* for all", "/*")
  .option("--method <method>", "which methods (repeatable; default: all)", collect)
  .option("--jwt-issuer <url>", "only with a token of this issuer (default: open to everyone)")
  .option("--jwks-uri <url>", "where the issuer's keys are (default: as its metadata says)")
  .option("--audience <name>", "which the token must be for (repeatable)", collect)
  .option("--scope <name>", "which the token must have (repeatable)", collect)
  .option(
    "--cors <origin>",
    "allow pages of this origin to call it, '*': of any (repeatable)",
    collect,
  )
  .option("--request-timeout <seconds>", "how long a request may take (default: 180)", seconds)
  .option("--dry-run", "print the APIRule and apply nothing")
  .option("--no-wait", "return as soon as the APIRule is stored")
  .action(async (name, options, command) =>
    (await import("./commands/expose.ts")).expose(name, {
      ...command.optsWithGlobals(),
      ...options,
    }),
  );

program
  .command("install")
  .description("install Spry on a Kubernetes cluster, or bring an installation up to date")
  .option(
    "-f, --values <file>",
    "images, registry, ... as for the Helm chart (repeatable)",
    collect,
    [],
  )
  .option("--dry-run", "print the objects and apply nothing")
  .option("--no-wait", "return as soon as the objects are stored")
  .option("--timeout <seconds>", "how long to wait until everything is ready", seconds, 300)
  .action(async (options, command) =>
    (await import("./commands/install.ts")).install({ ...command.optsWithGlobals(), ...options }),
  );

program
  .command("uninstall")
  .description("remove Spry from a cluster; refused while Functions exist")
  .addOption(
    new Option("--functions <what>", "what to do with Functions").choices(["keep", "delete"]),
  )
  .option("--timeout <seconds>", "how long to wait until everything is deleted", seconds, 300)
  .action(async (options, command) =>
    (await import("./commands/uninstall.ts")).uninstall({
      ...command.optsWithGlobals(),
      ...options,
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof UserError) {
    console.error(`error: ${messageOf(error)}`);
    if (error.wayOut) console.error(`       ${error.wayOut}`);
  } else if (error instanceof StatusError) {
    console.error(`error: ${error.message}`);
  } else {
    // A bug, or something nobody thought of: everything that helps to find it.
    console.error(error);
  }
  // What a command that failed half-way has left open must not keep it alive.
  process.exit(1);
}
