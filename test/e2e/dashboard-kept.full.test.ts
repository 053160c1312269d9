/** Nothing that is typed is lost or changed: line ends, kinds of variables, changes of others. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string, source = code, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, source, spec));
const specOf = async (name: string) =>
  JSON.parse(await platform.k(`get function ${name} -o jsonpath={.spec}`)) as {
    env: object[];
    source: { inline: { source: string } };
  };

async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
const applied = async (page: Page, name: string) => {
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText(`${name} is applied.`).waitFor();
};

const pem = "-----BEGIN KEY-----\r\nabc\r\ndef\r\n-----END KEY-----\r\n";

describe("variables", () => {
  test("keep the line ends of their values, and what the form does not know", async () => {
    const ofNode = { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } };
    await apply("lines", code, { env: [{ name: "KEY", value: pem }, ofNode] });
    const { page, complaints } = await user.open("/functions/default/lines/settings");
    const key = page.getByLabel("Value of variable 1");
    expect(await key.inputValue()).toBe(pem.replaceAll("\r\n", "\n"));
    await key.press("ControlOrMeta+Home");
    await key.press("x");
    expect(await page.getByLabel("Where variable 2 is from").inputValue()).toBe("other");
    await page.getByText("spec.nodeName").waitFor();
    await page.getByRole("button", { name: "Variable", exact: true }).click();
    await page.getByLabel("Name of variable 3").fill("PASTED");
    await page.getByLabel("Value of variable 3").fill("one\ntwo\n");
    await user.shot(page, "variables");
    await applied(page, "lines");
    expect((await specOf("lines")).env).toEqual([
      { name: "KEY", value: `x${pem}` },
      ofNode,
      { name: "PASTED", value: "one\ntwo\n" },
    ]);
    expect(complaints).toEqual([]);
  });

  test("keep what was typed for each kind, and two of one name are said", async () => {
    await apply("kinds", code, { env: [{ name: "A", value: "typed" }] });
    const { page } = await user.open("/functions/default/kinds/settings");
    const from = page.getByLabel("Where variable 1 is from");
    await from.selectOption("Secret");
    await page.getByLabel("Secret of variable 1").fill("shop");
    await from.selectOption("ConfigMap");
    await from.selectOption("Value");
    expect(await page.getByLabel("Value of variable 1").inputValue()).toBe("typed");
    await from.selectOption("Secret");
    expect(await page.getByLabel("Secret of variable 1").inputValue()).toBe("shop");
    await page.getByRole("button", { name: "Variable", exact: true }).click();
    await page.getByLabel("Name of variable 2").fill("A");
    await page.getByText("a variable has this name already").waitFor();
    await page.getByLabel("Name of variable 2").fill("B");
    await page.getByRole("button", { name: "Remove variable A" }).click();
    // The row that has moved up has nothing of the one that was there.
    await page.getByLabel("Where variable 1 is from").selectOption("Secret");
    expect(await page.getByLabel("Secret of variable 1").inputValue()).toBe("");
  });
});

describe("line ends of a source", () => {
  test("stay, only what was typed is a change, and undoing it leaves none", async () => {
    const source = "// one\r\n// two\r\nmodule.exports = { main: () => 1 };\r\n";
    await apply("crlf", source);
    const { page } = await user.open("/functions/default/crlf");
    const editor = page.getByLabel("Source of crlf", { exact: true });
    await editor.click();
    await page.keyboard.press("ControlOrMeta+Home");
    await page.keyboard.type("// zero\n");
    await page.getByRole("button", { name: "Review" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("// zero").waitFor();
    expect(await dialog.locator(".plus").count()).toBe(1);
    expect(await dialog.locator(".minus").count()).toBe(0);
    await page.keyboard.press("Escape");
    await editor.click();
    // On a busy machine each key is a step of its own.
    for (let i = 0; i < 12; i++) await page.keyboard.press("ControlOrMeta+z");
    await expect.poll(() => page.getByText("Changes not applied.").count()).toBe(0);
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.type("// end");
    await applied(page, "crlf");
    expect((await specOf("crlf")).source.inline.source).toBe(`${source}// end`);
  });
});

test("another name in the YAML is said, and not applied", async () => {
  await apply("named");
  const { page } = await user.open("/functions/default/named/yaml");
  const manifest = `apiVersion: serverless.kyma-project.io/v1alpha2\nkind: Function\nmetadata:\n  name: other\nspec:\n  source:\n    inline:\n      source: x\n`;
  await type(page, "YAML of named", manifest);
  await page.getByText("Changes not applied.").waitFor();
  expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
  await page.getByText("metadata.name of an object cannot be changed: it is named").waitFor();
});

describe("another user's change", () => {
  test("is not taken back by Ctrl-Z", async () => {
    await apply("undo", "// mine\n// middle\n// theirs\n");
    const { page } = await user.open("/functions/default/undo");
    const editor = page.getByLabel("Source of undo", { exact: true });
    await editor.click();
    await apply("undo", "// mine\n// middle\n// theirs, changed\n");
    await expect.poll(() => editor.textContent()).toContain("changed");
    for (let i = 0; i < 3; i++) await page.keyboard.press("ControlOrMeta+z");
    expect(await editor.textContent()).toContain("changed");
    expect(await page.getByText("Changes not applied.").count()).toBe(0);
  });

  test("of other variables and other lines stays, without a question", async () => {
    const lines = "// a\n// b\n// c\n// d\n";
    await apply("together", lines, { env: [{ name: "A", value: "1" }] });
    const { page } = await user.open("/functions/default/together/settings");
    await page.getByRole("button", { name: "Variable", exact: true }).click();
    await page.getByLabel("Name of variable 2").fill("MINE");
    await page.getByLabel("Value of variable 2").fill("2");
    await page.locator('nav.tabs a[href$="/code"]').click();
    await page.getByLabel("Source of together", { exact: true }).click();
    await page.keyboard.press("ControlOrMeta+Home");
    await page.keyboard.type("// mine\n");
    await apply("together", `${lines}// theirs\n`, {
      env: [
        { name: "A", value: "1" },
        { name: "THEIRS", value: "3" },
      ],
    });
    await page.getByText("Another user has changed this Function").waitFor();
    await applied(page, "together");
    const { env, source } = await specOf("together");
    expect(source.inline.source).toBe(`// mine\n${lines}// theirs\n`);
    expect(env).toEqual([
      { name: "A", value: "1" },
      { name: "MINE", value: "2" },
      { name: "THEIRS", value: "3" },
    ]);
  });

  test("of the same value is a choice that nothing has made before", async () => {
    await apply("choice", code, { env: [{ name: "A", value: "1" }] });
    const { page, complaints } = await user.open("/functions/default/choice/settings");
    await page.getByLabel("Value of variable 1").fill("mine");
    await apply("choice", code, { env: [{ name: "A", value: "theirs" }] });
    await page.getByText("Another user has changed this Function").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    const dialog = page.getByRole("dialog", { name: "Another user has changed the same fields" });
    await dialog.getByText("spec.env[A].value").waitFor();
    expect(await dialog.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
    await user.shot(page, "clash-of-variables");
    await dialog.getByRole("radio", { name: "theirs" }).check();
    await dialog.getByRole("button", { name: "Apply" }).click();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect((await specOf("choice")).env).toEqual([{ name: "A", value: "theirs" }]);
    expect(complaints).toEqual([]);
  });
});
