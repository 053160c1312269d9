import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { eventually } from "../../testing.ts";
import { ociContainers, why } from "./testing.ts";

describe.skipIf(why !== "")(`commands and terminals of an OCI runtime's containers${why}`, () => {
  const { start, main } = ociContainers();

  test("a command runs in it as the same user, and is ended when it exceeds its time limit", async () => {
    const { container } = await start(main("setTimeout(() => {}, 60_000)"));
    const limits = { timeoutMs: 15_000 };
    const show = ["node", "-p", "process.getuid() + process.env.SPRY_READY_FD"];
    expect(await container.exec(show, limits)).toEqual({
      exitCode: 0,
      output: "10003\n",
    });
    expect(await container.exec(["sh", "-c", "exit 4"], limits)).toMatchObject({ exitCode: 4 });
    const endless = ["node", "-e", "setTimeout(() => {}, 60_000)"];
    expect(await container.exec(endless, { timeoutMs: 300 })).toMatchObject({ exitCode: -1 });
    const count = ["sh", "-c", "ls -d /proc/[0-9]* | wc -l"];
    await eventually(async () =>
      expect(Number((await container.exec(count, limits)).output)).toBeLessThanOrEqual(5),
    );
  });

  test("a container that has an input can be written to", async () => {
    const { container, log } = await start(main("process.stdin.pipe(process.stdout)"), {
      stdin: "once",
    });
    container.openStdin()?.end("typed");
    expect(await container.exited).toMatchObject({ exitCode: 0 });
    expect(log()).toBe("typed");
  });

  test("a container with tty runs on a terminal that can be resized and written to", async () => {
    const show =
      "process.stdout.on('resize', () => console.log('resized ' + process.stdout.columns));";
    const end = "process.stdin.once('data', () => process.exit(7))";
    const { container, log } = await start(
      main(`console.log(process.stdin.isTTY + ' ' + process.env.TERM); ${show} ${end}`),
      { stdin: "terminal", tty: true, keepExitCode: true },
    );
    await eventually(() => expect(log()).toContain("true xterm\r\n"));
    container.resize?.({ columns: 77, rows: 20 });
    await eventually(() => expect(log()).toContain("resized 77"));
    container.openStdin?.()?.write("go\n");
    expect(await container.exited).toMatchObject({ exitCode: 7 });
  });

  test("a person's command has its streams, and a terminal if it asks for one", async () => {
    const { container } = await start(main("setTimeout(() => {}, 60_000)"));
    const plain = container.execStreams({
      argv: ["sh", "-c", "cat; echo problem >&2; exit 3"],
      stdin: true,
      tty: false,
    });
    plain.stdin?.end("typed");
    expect(await plain.exited).toEqual({ exitCode: 3 });
    // A late reader still gets all of the output.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await text(plain.stdout)).toBe("typed");
    expect(await text(plain.stderr ?? plain.stdout)).toBe("problem\n");
    const show = "process.stdout.on('resize', () => process.exit(process.stdout.columns))";
    const argv = [
      "node",
      "-e",
      `${show}; setInterval(() => {}, 1000); console.log('on a terminal')`,
    ];
    const terminal = container.execStreams({ argv, stdin: true, tty: true });
    await once(terminal.stdout, "data");
    terminal.resize({ columns: 77, rows: 20 });
    expect(await terminal.exited).toEqual({ exitCode: 77 });
  });
});
