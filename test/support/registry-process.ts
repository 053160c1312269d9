/**
 * Program: a registry on a directory, to be killed by tests. Says its port; with a third argument, the images
 * in use, it cleans at once, as if an hour had passed, and says `cleaned`.
 */
import { createRegistry, type ImagesInUse } from "@spry/image";

const [dir = "", inUse] = process.argv.slice(2);
const aheadMs = inUse === undefined ? 0 : 3_600_000;
const registry = createRegistry({
  dir,
  clock: { now: () => Date.now() + aheadMs, elapsed: () => performance.now() },
});
const { port } = await registry.listen({ host: "127.0.0.1", port: 0 });
console.log(port);
if (inUse !== undefined) {
  await registry.clean(JSON.parse(inUse) as ImagesInUse);
  console.log("cleaned");
}
