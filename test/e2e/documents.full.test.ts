/** The documents for users that begin where the quick start has ended, followed to the letter. */
import { afterAll, beforeAll, describe, test } from "vitest";
import { findPython } from "@spry/machine";
import { Documents } from "../support/documents.ts";

const documents = new Documents();
const python = await findPython("3.12");

beforeAll(async () => {
  documents.make();
  await documents.install();
}, 300_000);
afterAll(() => documents.remove());

describe("with the package installed", () => {
  test.skipIf(!python)("the tutorial", () => documents.follow("docs/tutorial.md"), 900_000);

  test.each([
    ["local development", "local-development"],
    ["handlers", "handlers"],
    ["environment variables", "environment"],
    ["events", "events"],
    ["moving from other systems", "migration"],
  ])("%s", (_, name) => documents.follow(`docs/${name}.md`), 600_000);
});
