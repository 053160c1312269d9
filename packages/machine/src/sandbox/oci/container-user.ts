import { readFileSync } from "node:fs";
import path from "node:path";
import { type Isolation } from "../sandbox.ts";

export interface ContainerUser {
  uid: number;
  gid: number;
  additionalGids: number[];
}

/**
 * Whom a container runs as: what the Pod says, then the image's `User` (`name`, `uid`, each with
 * `:group`; OCI image-spec, config.md). Names are looked up in the image's own files, of which
 * `layers` lists the topmost first.
 */
export function userOf(
  imageUser: string,
  isolation: Isolation | undefined,
  layers: readonly string[],
): ContainerUser {
  const [name = "", groupName = ""] = imageUser.split(":", 2);
  const passwd = entriesOf(layers, "etc/passwd");
  const known = passwd.find((entry) => entry[0] === name || entry[2] === name);
  const uid = isolation?.user ?? (name === "" ? 0 : (numberOf(name) ?? numberOf(known?.[2])));
  if (uid === undefined)
    throw new Error(`user ${name} of the image is not in its /etc/passwd: set runAsUser`);
  // The image's group belongs to the image's user, and so does the one in its passwd file.
  const own = passwd.find((entry) => numberOf(entry[2]) === uid);
  const imageGroup = isolation?.user === undefined ? groupOf(groupName, layers) : undefined;
  const gid = isolation?.group ?? imageGroup ?? numberOf(own?.[3]) ?? 0;
  return { uid, gid, additionalGids: [...new Set(isolation?.supplementalGroups)] };
}

function groupOf(name: string, layers: readonly string[]): number | undefined {
  if (name === "") return undefined;
  const known = entriesOf(layers, "etc/group").find((entry) => entry[0] === name);
  const gid = numberOf(name) ?? numberOf(known?.[2]);
  if (gid === undefined)
    throw new Error(`group ${name} of the image is not in its /etc/group: set runAsGroup`);
  return gid;
}

/** Lines of the first such file, by their fields. */
function entriesOf(layers: readonly string[], file: string): string[][] {
  for (const layer of layers) {
    try {
      return readFileSync(path.join(layer, file), "utf8")
        .split("\n")
        .map((line) => line.split(":"));
    } catch {
      // The next layer may have one.
    }
  }
  return [];
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
