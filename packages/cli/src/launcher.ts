/** The process that has started this one, where Node.js is too old to become another program (bin/spry.mjs). */
import { Socket } from "node:net";

/** When it is killed, which leaves it no time to pass that on, this process ends as by SIGTERM. */
export function endWithLauncher(): void {
  const descriptor = Number(process.env["SPRY_LAUNCHER_FD"]);
  delete process.env["SPRY_LAUNCHER_FD"];
  if (!Number.isInteger(descriptor) || descriptor < 3) return;
  const end = () => process.kill(process.pid, "SIGTERM");
  try {
    new Socket({ fd: descriptor, readable: true, writable: false })
      .on("error", end)
      .on("end", end)
      .resume()
      .unref();
  } catch {
    // A variable of another program.
  }
}
