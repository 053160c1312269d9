/** Commands about events. */
import { type Command } from "commander";
import { jsonOutput } from "./json-output.ts";
import { collect, count } from "./values.ts";

export function addEventCommands(program: Command): void {
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
      (await import("../commands/events.ts")).publish(command.optsWithGlobals()),
    );
  events
    .command("list")
    .description("list the Subscriptions of a namespace, with the number of waiting events")
    .addOption(jsonOutput())
    .action(async (_options, command) =>
      (await import("../commands/events.ts")).list(command.optsWithGlobals()),
    );
  events
    .command("tail")
    .description("print the events of the whole cluster as they are accepted, a line of JSON each")
    .option("--after <position>", "start after this position (default: at the next event)", count)
    .option("--type <type>", "only events of this type")
    .option("--source <source>", "only events of this source")
    .option("--once", "print the stored events and exit")
    .action(async (_options, command) =>
      (await import("../commands/events.ts")).tail(command.optsWithGlobals()),
    );
  events
    .command("replay <subscription>")
    .description("deliver events to a Subscription again, from a time or a position on")
    .option("--from <time>", "an RFC 3339 time, or how long ago, such as 30m")
    .option("--position <position>", "the position of the first event", count)
    .action(async (name, _options, command) =>
      (await import("../commands/events.ts")).replay(name, command.optsWithGlobals()),
    );

  const dlq = program
    .command("dlq")
    .description("dead letters: events that could not be delivered");
  dlq
    .command("list <subscription>")
    .description("dead letters of a Subscription")
    .addOption(jsonOutput())
    .action(async (name, _options, command) =>
      (await import("../commands/dlq.ts")).list(name, command.optsWithGlobals()),
    );
  dlq
    .command("show <subscription> <id>")
    .description("one dead letter, as JSON")
    .action(async (name, id, _options, command) =>
      (await import("../commands/dlq.ts")).show(name, id, command.optsWithGlobals()),
    );
  for (const [verb, description] of [
    ["redrive", "deliver dead letters again"],
    ["discard", "remove dead letters for good"],
  ] as const) {
    dlq
      .command(`${verb} <subscription> [ids...]`)
      .description(description)
      .option("--all", "all dead letters of the Subscription")
      .action(async (name, ids, _options, command) =>
        (await import("../commands/dlq.ts")).move(verb, name, ids, command.optsWithGlobals()),
      );
  }
  const calls = program
    .command("async")
    .description("asynchronous calls: their clients do not wait for the response");
  calls
    .command("list")
    .description("calls of a namespace, the latest last")
    .addOption(jsonOutput())
    .action(async (_options, command) =>
      (await import("../commands/async.ts")).list(command.optsWithGlobals()),
    );
  calls
    .command("get <id>")
    .description("one call with its result, as JSON")
    .action(async (id, _options, command) =>
      (await import("../commands/async.ts")).get(id, command.optsWithGlobals()),
    );
  calls
    .command("cancel <id>")
    .description("cancel a call that has not ended")
    .action(async (id, _options, command) =>
      (await import("../commands/async.ts")).cancel(id, command.optsWithGlobals()),
    );
  program
    .command("schedule")
    .description("schedules of Functions")
    .command("run <function> <schedule>")
    .description("call a Function as one of its schedules does, now; prints the call's id")
    .action(async (name, schedule, _options, command) =>
      (await import("../commands/async.ts")).runSchedule(name, schedule, command.optsWithGlobals()),
    );
}
