/** Two users and kubectl change one Function in a random order: what was accepted from one of them, no other one takes away. */
import { isFullSuite } from "@spry/test-kit";
import { type Page } from "playwright-core";
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";
import { seeded } from "../support/seeded.ts";

const user = new DashboardUser();
const { platform } = user;
const name = "shared";
const fullMs = 600_000;
const quickSteps = 16;

/** Who changes which line of the code. */
const lines = { anna: 3, ben: 7, kubectl: 11 };
const code = `module.exports = { main: () => notes };
const notes = \`
anna
.
.
.
ben
.
.
.
kubectl
\`;
`;

interface Shared {
  metadata: { labels?: Record<string, string>; resourceVersion: string };
  spec: {
    env?: { name: string; value?: string }[];
    source: { inline: { source: string } };
  };
}
const read = async () => JSON.parse(await platform.k(`get function ${name} -o json`)) as Shared;

/** One user at the page. What was typed is only accepted when it has been applied. */
class Person {
  readonly who: "anna" | "ben";
  readonly page: Page;
  readonly accepted: string[];
  #typed: string[] = [];

  constructor(who: "anna" | "ben", page: Page, accepted: string[]) {
    this.who = who;
    this.page = page;
    this.accepted = accepted;
  }

  async typeCode(mark: string): Promise<void> {
    await user.goTo(this.page, `/functions/default/${name}/code`);
    const editor = this.page.getByLabel(`Source of ${name}`, { exact: true });
    await editor.and(this.page.locator(".cm-content")).waitFor();
    await user.goTo(this.page, `/functions/default/${name}/code?line=${lines[this.who]}`);
    await this.page.locator(".cm-content:focus").first().waitFor();
    await this.page.keyboard.insertText(`${mark} `);
    await expect.poll(() => editor.textContent()).toContain(mark);
    this.#typed.push(mark);
  }

  async addVariable(mark: string): Promise<void> {
    await user.goTo(this.page, `/functions/default/${name}/settings`);
    await this.page.getByRole("button", { name: "Variable", exact: true }).click();
    const names = this.page.getByLabel(/^Name of variable \d+$/);
    await names.last().fill(mark);
    await this.page
      .getByLabel(/^Value of variable \d+$/)
      .last()
      .fill("x");
    this.#typed.push(mark);
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.page.locator("nav.tabs").waitFor();
    if (this.#typed.length > 0) await this.page.getByText("Changes not applied.").waitFor();
  }

  async discard(): Promise<void> {
    if (this.#typed.length === 0) return;
    await this.page.locator(".savebar").getByRole("button", { name: "Discard" }).click();
    await this.page.locator(".savebar").waitFor({ state: "detached" });
    this.#typed = [];
  }

  async apply(): Promise<void> {
    if (this.#typed.length === 0) return;
    await this.page.keyboard.press("ControlOrMeta+s");
    await this.page.locator(".savebar").waitFor({ state: "detached" });
    this.accepted.push(...this.#typed);
    this.#typed = [];
  }
}

async function byKubectl(mark: string, random: () => number, accepted: string[]): Promise<void> {
  if (random() < 0.4) await platform.k(`label function ${name} ${mark}=yes`);
  else if (random() < 0.5) {
    const value = JSON.stringify([{ op: "add", path: "/spec/env/-", value: { name: mark } }]);
    await platform.k(`patch function ${name} --type=json -p ${value.replaceAll(" ", "")}`);
  } else {
    const fn = await read();
    const { inline } = fn.spec.source;
    const all = inline.source.split("\n");
    all[lines.kubectl - 1] = `${mark} ${all[lines.kubectl - 1]}`;
    inline.source = all.join("\n");
    // With the version that was read: where another one was faster, nothing is accepted.
    const isDone = await platform.k("replace -f -", JSON.stringify(fn)).catch((error: Error) => {
      if (!/Conflict|has been modified/.test(error.message)) throw error;
      return undefined;
    });
    if (isDone === undefined) return;
  }
  accepted.push(mark);
}

test(
  "no accepted change of anybody is missing",
  async () => {
    const { random, seed } = seeded(39);
    await platform.k(
      "create -f -",
      functionManifest(name, code, { env: [{ name: "FIRST", value: "x" }] }),
    );
    const accepted: string[] = [];
    const done: string[] = [];
    const at = `/functions/default/${name}`;
    const [anna, ben] = await Promise.all([user.open(at), user.open(at)]);
    const people = [
      new Person("anna", anna.page, accepted),
      new Person("ben", ben.page, accepted),
    ] as const;
    const begin = performance.now();
    const isOver = (step: number) =>
      isFullSuite ? performance.now() - begin > fullMs : step >= quickSteps;
    for (let step = 0; !isOver(step); step++) {
      const mark = `m${step}`;
      // Often both are at work at the same time.
      const turns = people.map(async (each, index) => {
        const chance = random();
        if (random() < 0.4) return;
        done.push(`${each.who} ${chance}`);
        if (chance < 0.3) await each.typeCode(`${mark}c${index}`);
        else if (chance < 0.6) await each.addVariable(`${mark}v${index}`);
        else if (chance < 0.68) await each.reload();
        else if (chance < 0.74) await each.discard();
        else await each.apply();
      });
      if (random() < 0.4) turns.push(byKubectl(`${mark}k`, random, accepted));
      await Promise.all(turns);
    }
    for (const each of people) await each.apply();
    const fn = await read();
    const found = new Set([
      ...fn.spec.source.inline.source.split(/\s+/),
      ...(fn.spec.env ?? []).map((each) => each.name),
      ...Object.keys(fn.metadata.labels ?? {}),
    ]);
    expect(accepted.length, `seed ${seed}`).toBeGreaterThan(5);
    expect(
      accepted.filter((mark) => !found.has(mark)),
      `seed ${seed}: ${done.length} actions`,
    ).toEqual([]);
    // No variable is there twice.
    const names = (fn.spec.env ?? []).map((each) => each.name);
    expect(names.length).toBe(new Set(names).size);
    expect([...anna.complaints, ...ben.complaints]).toEqual([]);
  },
  fullMs + 300_000,
);
