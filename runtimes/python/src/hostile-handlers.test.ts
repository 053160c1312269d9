import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const source = `
import ctypes, os, signal, sys, threading, time

def end_process(path):
    if path == "/segfault": ctypes.string_at(0)
    if path == "/abort": os.abort()
    if path == "/exit": os._exit(3)
    if path == "/kill": os.kill(os.getpid(), signal.SIGKILL)
    if path == "/descriptors": os.closerange(0, 1000)
    if path == "/builtins":
        import builtins
        builtins.len = builtins.isinstance = None

def act(path):
    end_process(path)
    if path == "/sys-exit": sys.exit(3)
    if path == "/base-exception": raise BaseException("no Exception")
    if path == "/unprintable":
        class Unprintable(Exception):
            def __str__(self): raise RuntimeError("no")
        raise Unprintable()
    if path == "/recursion": act(path)
    if path == "/memory": bytearray(1 << 60)
    if path == "/surrogate": return "\\ud800"
    if path == "/terminate":
        os.kill(os.getppid(), 0)
        os.kill(os.getpid(), signal.SIGTERM)
    if path == "/signals":
        try: signal.signal(signal.SIGTERM, signal.SIG_DFL)
        except ValueError: pass  # only the main thread may
    if path == "/output": sys.stdout.close(); sys.stderr.close()
    if path == "/hook": sys.excepthook = None
    if path == "/thread": threading.Thread(target=time.sleep, args=(1e6,)).start()
    if path == "/threads":
        for _ in range(200): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
    if path == "/fork" and os.fork() == 0: return "twice"
    return "fine"

def main(event, context):
    return act(event["extensions"]["request"].path)
`;

const ending = ["/segfault", "/abort", "/exit", "/kill", "/descriptors", "/builtins"];
const failing = [
  "/sys-exit",
  "/base-exception",
  "/unprintable",
  "/recursion",
  "/memory",
  "/surrogate",
];
const odd = ["/terminate", "/signals", "/output", "/thread", "/threads", "/fork", "/hook"];

describe.skipIf(missingPython).each(["def", "async def"])("a hostile handler, %s,", (form) => {
  let runtime: PythonRuntime;

  beforeAll(async () => {
    runtime = await PythonRuntime.start(source.replace("def main", `${form} main`));
  });
  afterAll(() => runtime.stop());

  const answersAgain = async () => {
    // Four at once: also the threads that are started when they are needed.
    const answers = await Promise.all([1, 2, 3, 4].map(() => runtime.call("/")));
    expect(answers.map(({ body }) => body)).toEqual(["fine", "fine", "fine", "fine"]);
  };

  test.each(ending)(
    "that ends its process by %s leaves nobody waiting, and is replaced",
    async (path) => {
      // The connections of an asynchronous handler are its process's own.
      const status = await runtime.call(path).then(
        (answer) => answer.status,
        (error: NodeJS.ErrnoException) => error.code,
      );
      expect(status).toBe(form === "def" ? 500 : "ECONNRESET");
      await answersAgain();
    },
  );

  test.each(failing)("that fails by %s is answered 500", async (path) => {
    expect((await runtime.call(path)).status).toBe(500);
    await answersAgain();
  });

  test.each(odd)("that does %s is served on", async (path) => {
    expect((await runtime.call(path)).body).toMatch(/^(fine|twice)$/);
    // On what that has left a failure is answered too, also without an output.
    expect((await runtime.call("/sys-exit")).status).toBe(500);
    await answersAgain();
  });
});
