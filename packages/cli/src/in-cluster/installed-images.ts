import { type PlatformImages } from "@spry/controller";
import { UserError } from "../user-error.ts";

const runtime = /^(nodejs|python)\d+$/;
const builderOf = "builder-";

/**
 * What builds start from, among an installation's images by the names of `npm run images`: `nodejs24`, `builder`,
 * `builder-python314`, ... Throws a `UserError` when there is no builder.
 */
export function installedImages(images: Readonly<Record<string, string>>): PlatformImages {
  const named = Object.entries(images);
  const { builder } = images;
  if (!builder)
    throw new UserError("SPRY_IMAGES names no image of the builder", "the Deployment sets it");
  return {
    runtimeImages: Object.fromEntries(named.filter(([name]) => runtime.test(name))),
    builderImage: builder,
    builderImages: Object.fromEntries(
      named.flatMap(([name, image]) =>
        name.startsWith(builderOf) ? [[name.slice(builderOf.length), image]] : [],
      ),
    ),
  };
}
