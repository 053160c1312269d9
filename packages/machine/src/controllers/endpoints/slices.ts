import { deepEqual, type EndpointSlice, isAlreadyExists, isNotFound, resources } from "@spry/kube";
import { type ControllerContext } from "../context.ts";

/**
 * Makes the slices that are `present` those that are `desired`: one of the same ports is changed, then any other, and what is
 * left over goes. A slice's family of addresses cannot be changed. A desired slice's name is used if it is free.
 */
export async function applySlices(
  context: ControllerContext,
  present: readonly EndpointSlice[],
  desired: readonly EndpointSlice[],
): Promise<void> {
  const { client } = context;
  const left = [...present];
  const take = (fits: (slice: EndpointSlice) => boolean) => {
    const index = left.findIndex(fits);
    return index < 0 ? undefined : left.splice(index, 1)[0];
  };
  const pairs = desired.map((slice) => ({
    slice,
    isKin: ({ addressType }: EndpointSlice) => addressType === slice.addressType,
    match: take(
      ({ addressType, ports }) =>
        addressType === slice.addressType && deepEqual(ports ?? [], slice.ports),
    ),
  }));
  for (const { slice, isKin, match } of pairs) {
    const existing = match ?? take(isKin);
    if (!existing) await createSlice(context, slice, present);
    else if (!isSame(existing, slice)) {
      const { name, resourceVersion } = existing.metadata;
      const metadata = { ...slice.metadata, name, resourceVersion } as EndpointSlice["metadata"];
      await client.update(resources.endpointSlices, { ...slice, metadata });
    }
  }
  for (const { metadata } of left) {
    const { namespace, name = "" } = metadata;
    await client.delete(resources.endpointSlices, { namespace, name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

async function createSlice(
  { client }: ControllerContext,
  slice: EndpointSlice,
  present: readonly EndpointSlice[],
): Promise<void> {
  const taken = new Set(present.map(({ metadata }) => metadata.name));
  const { name = "" } = slice.metadata;
  // One of that name may have come to hold other ports.
  let free = name;
  for (let number = 1; taken.has(free); number++) free = `${name}x${number}`;
  try {
    const metadata = { ...slice.metadata, name: free };
    await client.create(resources.endpointSlices, { ...slice, metadata });
  } catch (error) {
    // The cache is behind: what it shows next brings the next pass.
    if (!isAlreadyExists(error)) throw error;
  }
}

function isSame(a: EndpointSlice, b: EndpointSlice): boolean {
  return (
    deepEqual(a.endpoints ?? [], b.endpoints) &&
    deepEqual(a.ports ?? [], b.ports) &&
    deepEqual(a.metadata.labels, b.metadata.labels)
  );
}
