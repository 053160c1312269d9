/** Commands about what Functions use, and who may call them. */
import { type Command } from "commander";
import { jsonOutput } from "./json-output.ts";
import { collect, seconds } from "./values.ts";

export function addConfigurationCommands(program: Command): void {
  const env = program.command("env").description("a Function's environment variables");
  env
    .command("list <name>")
    .description("list them; values from Secrets are not shown")
    .addOption(jsonOutput())
    .action(async (name, _options, command) =>
      (await import("../commands/env.ts")).listEnv(name, command.optsWithGlobals()),
    );
  env
    .command("set <name> <variables...>")
    .description(
      "set variables (NAME=VALUE) or remove them (NAME-), and wait until they are served",
    )
    .option("--no-wait", "return as soon as the Function is changed")
    .option("--timeout <seconds>", "how long to follow the Function", seconds, 300)
    .action(async (name, variables, _options, command) =>
      (await import("../commands/env.ts")).setEnv(name, variables, command.optsWithGlobals()),
    );

  const secrets = program.command("secrets").description("Secrets that Functions use");
  secrets
    .command("list")
    .description("list Secrets and their keys; values are not shown")
    .addOption(jsonOutput())
    .action(async (_options, command) =>
      (await import("../commands/secrets.ts")).listSecrets(command.optsWithGlobals()),
    );
  secrets
    .command("set <secret> <keys...>")
    .description(
      "set keys (KEY=VALUE, KEY=@FILE, or KEY to read standard input) or remove them (KEY-)",
    )
    .action(async (secret, keys, _options, command) =>
      (await import("../commands/secrets.ts")).setSecrets(secret, keys, command.optsWithGlobals()),
    );
  secrets
    .command("import <secret> <file>")
    .description("set all keys of a .env file")
    .action(async (secret, file, _options, command) =>
      (await import("../commands/secrets.ts")).importSecrets(
        secret,
        file,
        command.optsWithGlobals(),
      ),
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
    .option("--jwt-issuer <url>", "require a token of this issuer (default: open to everyone)")
    .option("--jwks-uri <url>", "URL of the issuer's keys (default: from the issuer's metadata)")
    .option("--audience <name>", "audience that the token must have (repeatable)", collect)
    .option("--scope <name>", "scope that the token must have (repeatable)", collect)
    .option(
      "--cors <origin>",
      "allow web pages of this origin to call it; '*' allows all (repeatable)",
      collect,
    )
    .option("--request-timeout <seconds>", "how long a request may take (default: 180)", seconds)
    .option("--dry-run", "print the APIRule and apply nothing")
    .option("--no-wait", "return as soon as the APIRule is stored")
    .action(async (name, options, command) =>
      (await import("../commands/expose.ts")).expose(name, {
        ...command.optsWithGlobals(),
        ...options,
      }),
    );

  program
    .command("unexpose <name>")
    .description("take a Function's public host away: deletes the APIRule that expose wrote")
    .option("-y, --yes", "delete without asking; required without a terminal")
    .action(async (name, _options, command) =>
      (await import("../commands/unexpose.ts")).unexpose(name, command.optsWithGlobals()),
    );
}
