import { resources } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const jobs = async () => (await platform.children(resources.jobs, "hello")).map(nameOf);
const nameOf = ({ metadata }: { metadata: { uid?: string } }) => metadata.uid;

async function podThatWaits(reason: string, message: string): Promise<void> {
  const deployment = await platform.deployment("hello");
  await platform.runPod(deployment, `hello-${reason.toLowerCase()}`, {
    state: { waiting: { reason, message } },
  });
  await platform.settle();
}

test("an image that the registry has lost is built again, and not again at once", async () => {
  await platform.running("hello");
  const [first] = await jobs();
  await podThatWaits("ImagePullBackOff", "Back-off pulling image: MANIFEST_UNKNOWN: not here");
  await platform.condition("hello", "BuildReady", "JobCreated");
  expect(await jobs()).not.toContain(first);
  await platform.finishBuild("hello");
  await platform.condition("hello", "BuildReady", "JobFinished");
  const second = await jobs();
  // The Pod has not tried again yet.
  await platform.settle();
  expect(await jobs()).toEqual(second);
});

test.each([
  ["a registry that is away", "ErrImagePull", "connect ECONNREFUSED 127.0.0.1:5000"],
  ["a wrong password", "ErrImagePull", "401 Unauthorized"],
  ["a crash with such words", "CrashLoopBackOff", "file not found"],
])("%s brings no build", async (_, reason, message) => {
  await platform.running("hello");
  const before = await jobs();
  await podThatWaits(reason, message);
  expect(await jobs()).toEqual(before);
});
