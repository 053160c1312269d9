import { type Case, apply, at, get, patch, post, put, remove, table } from "../step.ts";
import { samples } from "./objects.ts";

/** Each kind through its life: created twice, read, shown, changed in every way, deleted. */
export const lifecycles: Case[] = Object.entries(samples).map(
  ([kind, { groupVersion, plural, object }]) => {
    const all = at(groupVersion, plural);
    const one = `${all}/one`;
    const typed = (rest: object) => ({
      apiVersion: groupVersion,
      kind,
      metadata: { name: "one" },
      ...rest,
    });
    return {
      name: `life of a ${kind}`,
      steps: [
        post(all, object),
        post(all, object),
        get(one),
        get(all),
        table(all),
        table(one),
        get(one, { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" }),
        patch("merge", one, { metadata: { labels: { changed: "merge" } } }),
        patch("strategic", one, { metadata: { annotations: { changed: "strategic" } } }),
        patch("json", one, [{ op: "add", path: "/metadata/labels/more", value: "json" }]),
        patch("merge", one, {}),
        apply("someone", one, typed({ metadata: { name: "one", labels: { applied: "yes" } } })),
        apply("someone", one, typed({ metadata: { name: "one" } })),
        put(one, object),
        put(one, { ...object, metadata: { name: "other" } }),
        put(one, { ...object, metadata: { name: "one", resourceVersion: "1" } }),
        get(`${one}/status`),
        get(`${one}/scale`),
        get(`${one}/unknown`),
        remove(`${one}?dryRun=All`),
        remove(one, { preconditions: { uid: "00000000-0000-4000-8000-000000000000" } }),
        remove(one),
        get(one),
        remove(one),
        apply("someone", one, { ...object, metadata: { name: "one" } }),
        remove(all),
      ],
    };
  },
);
