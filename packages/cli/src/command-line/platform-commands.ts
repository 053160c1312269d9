/** Commands about the platform of this machine. */
import { type Command, Option } from "commander";
import { jsonOutput } from "./json-output.ts";
import { podSecurityLevels } from "../pod-security-levels.ts";
import { sandboxKinds } from "../sandbox-kinds.ts";
import { collect, hostNames, port, warmProcesses } from "./values.ts";

export function addPlatformCommands(program: Command): void {
  program
    .command("up")
    .description("run the whole platform on this machine until Ctrl-C")
    .option("--data-dir <dir>", "directory for all data", ".spry")
    .option("--api-port <port>", "port of the Kubernetes API", port, 6443)
    .option("--gateway-port <port>", "port on which Functions are called", port, 8080)
    .option(
      "--https-port <port>",
      "port of HTTPS, for APIRules (default: 8443, or a free one)",
      port,
    )
    .option(
      "--publisher-port <port>",
      "port at which events are published (default: 8082, or a free one)",
      port,
    )
    .option("--webhook-port <port>", "port for webhooks of Git servers, 0: any free one", port, 0)
    .option("--registry-port <port>", "port of the image registry", port, 5000)
    .option("--registry-quota <size>", "size limit of the image registry", "20Gi")
    .option(
      "--allow-loopback <host:port>",
      "a registry or an issuer of tokens on this machine that users may name; may be repeated",
      collect,
    )
    .option(
      "--store-quota <size>",
      "size limit of all Kubernetes objects (default: two fifths of what Node.js may use for its heap)",
    )
    .addOption(
      new Option(
        "--sandbox <kind>",
        "how Functions run: in OCI containers, or as processes; auto takes the stronger one that works here",
      )
        .choices(sandboxKinds)
        .default("auto"),
    )
    .addOption(
      new Option(
        "--pod-security <level>",
        "Pod Security level of namespaces that have no label for it",
      )
        .choices(podSecurityLevels)
        .default("baseline"),
    )
    .option(
      "--warm <number>",
      "how many runtimes to keep started in advance, for Functions at zero and for new versions; or off",
      warmProcesses,
      2,
    )
    .option("--dashboard-port <port>", "port of the dashboard (default: 8081, or a free one)", port)
    .option(
      "--dashboard-host <name>",
      "host name at which a proxy offers the dashboard; may be repeated",
      hostNames,
    )
    .option("--metrics-port <port>", "port of the controllers' metrics, 0: any free one", port, 0)
    .option(
      "--gateway-metrics-port <port>",
      "port of the gateway's and the events' metrics, 0: any free one",
      port,
      0,
    )
    .option("--open", "open the dashboard in the browser")
    .option("--verify", "check everything in the data directory first (see spry doctor)")
    .option("--no-controller", "leave Functions to a controller and definitions of your own")
    .option("--no-example", "do not apply examples/hello at the first start")
    .action(async (options) => (await import("../commands/up.ts")).up(options));

  program
    .command("down")
    .description("stop the platform of a data directory, or end what it left running after a crash")
    .option("--data-dir <dir>", "the data directory", ".spry")
    .action(async (options) => (await import("../commands/down.ts")).down(options));

  program
    .command("dashboard")
    .description("open the dashboard: the running platform's, or one for the kubeconfig's cluster")
    .option("--data-dir <dir>", "the data directory of the platform", ".spry")
    .option("--port <port>", "port for a cluster's dashboard (default: 8081, or a free one)", port)
    .option("--no-open", "print the address and do not start a browser")
    .action(async (_options, command) =>
      (await import("../commands/dashboard.ts")).dashboard(command.optsWithGlobals()),
    );

  program
    .command("trust")
    .description("show how to make this system trust the certificates of exposed hosts")
    .option("--data-dir <dir>", "the data directory", ".spry")
    .option("--install", "add it to the system's store (asks for the administrator's password)")
    .action(async (options) => (await import("../commands/trust.ts")).trust(options));

  program
    .command("doctor")
    .description(
      "check this machine, and a data directory: objects, certificates, images by digest",
    )
    .addOption(jsonOutput())
    .option("--data-dir <dir>", "the data directory", ".spry")
    .action(async (_options, command) =>
      (await import("../commands/doctor.ts")).doctor(command.optsWithGlobals()),
    );

  program
    .command("upgrade")
    .description("check that a data directory fits this version, and save it to a file first")
    .option("--data-dir <dir>", "the data directory", ".spry")
    .action(async (options) => (await import("../commands/upgrade.ts")).upgrade(options));

  program
    .command("backup [file]")
    .description("save the platform of a data directory, running or not, to one file (- : stdout)")
    .option("--data-dir <dir>", "the data directory", ".spry")
    .action(async (file, options) => (await import("../commands/backup.ts")).backup(file, options));

  program
    .command("restore <file>")
    .description("replace a data directory with a backup (- : stdin)")
    .option("--data-dir <dir>", "the data directory", ".spry")
    .option("--force", "move the directory's content aside")
    .action(async (file, options) =>
      (await import("../commands/restore.ts")).restore(file, options),
    );
}
