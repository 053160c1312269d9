import { expect, test } from "vitest";
import { refuseOtherNames } from "./other-names.ts";
import { createProgram } from "./program.ts";

test("a neighbour's command is answered with ours, which exists", () => {
  const known = createProgram().commands.map((each) => each.name());
  for (const name of ["publish", "tail", "deployments", "secret", "ls", "whoami", "undo"]) {
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
  refuseOtherNames(["test", "x", "--", "--env"]);
  refuseOtherNames(["secrets", "set", "put"]);
  refuseOtherNames(["deploy", "publish"]);
  refuseOtherNames(["--help"]);
});
