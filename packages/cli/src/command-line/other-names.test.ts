import { type Command } from "commander";
import { expect, test } from "vitest";
import { refuseOtherNames, typedCommand } from "./other-names.ts";
import { createProgram } from "./program.ts";

test("a neighbour's command is answered with ours, which exists", () => {
  const known = createProgram().commands.map((each) => each.name());
  const theirs = ["publish", "tail", "deployments", "secret", "ls", "whoami", "undo", "undeploy"];
  const more = ["edit", "cron", "update", "ps", "templates", "namespaces", "config", "url"];
  const others = ["port-forward", "subscribe", "trigger", "start", "pods", "hide"];
  for (const name of [...theirs, ...more, ...others]) {
    expect(known).not.toContain(name);
    const refused = () => refuseOtherNames(["-n", "tail", name, "x"]);
    expect(refused).toThrow(`spry has no command ${name}`);
    try {
      refused();
    } catch (error) {
      const [, ours] = /spry (\w+)/.exec((error as { wayOut: string }).wayOut) ?? [];
      expect(known).toContain(ours);
    }
  }
  expect(() => refuseOtherNames(["function", "push", "x"])).toThrow("function has no command push");
  expect(() => refuseOtherNames(["create", "x"])).toThrow("spry has no command create");
  for (const name of ["create", "init", "--help"]) refuseOtherNames(["function", name, "x"]);
  expect(() => refuseOtherNames(["secret", "put", "KEY"])).toThrow("no command secret put");
  expect(() => refuseOtherNames(["secrets", "put", "KEY"])).toThrow("no command secrets put");
  expect(() => refuseOtherNames(["deploy", "--env=production"])).toThrow("no option --env");
  expect(() => refuseOtherNames(["dev", "x", "--remote"])).toThrow("no option --remote");
  expect(() => refuseOtherNames(["deploy", "-f", "x.yaml"])).toThrow("no option -f");
  expect(() => refuseOtherNames(["scale", "x", "--replicas=2"])).toThrow("no option --replicas");
  expect(() => refuseOtherNames(["init", "-l", "go"])).toThrow("no option -l");
  expect(() => refuseOtherNames(["logs", "x", "--lines", "3"])).toThrow("no option --lines");
  refuseOtherNames(["test", "x", "--", "--env"]);
  refuseOtherNames(["secrets", "set", "put"]);
  refuseOtherNames(["deploy", "publish"]);
  refuseOtherNames(["--help"]);
});

test("-v alone is the version", () => {
  const program = createProgram();
  expect(typedCommand(["-v"], program)).toEqual(["--version"]);
  expect(typedCommand(["-v", "get"], program)).toEqual(["-v", "get"]);
});

test.each(["deploy x", "apply x", "delete x", "rollback x", "expose x"])(
  "spry %s waits, which may be said, unless it is asked not to",
  async (line) => {
    const waits = async (...more: string[]) => {
      const program = createProgram();
      const command = program.commands.find((each) => each.name() === line.split(" ")[0]);
      let found: unknown;
      command?.action((...given: unknown[]) => (found = (given.at(-1) as Command).opts()["wait"]));
      await program.parseAsync([...line.split(" "), ...more], { from: "user" });
      return found;
    };
    expect([await waits(), await waits("--wait"), await waits("--no-wait")]).toEqual([
      true,
      true,
      false,
    ]);
  },
);
