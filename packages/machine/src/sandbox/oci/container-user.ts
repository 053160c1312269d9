import { linesOfImage } from "../foreign-files.ts";
import { type Isolation } from "../sandbox.ts";

export interface ContainerUser {
  uid: number;
  gid: number;
  additionalGids: number[];
}

/**
 * Whom a container runs as: what the Pod says, then the image's `User` (`name`, `uid`, each with
 * `:group`; OCI image-spec, config.md). Names are looked up in the image's own files, of which
 * `layers` lists the topmost first. They are read only where a name or a group has to be found. Throws for a name that
 * they do not have, and for files as `linesOfImage` refuses them.
 */
export function userOf(
  imageUser: string,
  isolation: Isolation | undefined,
  layers: readonly string[],
): ContainerUser {
  const additionalGids = [...new Set(isolation?.supplementalGroups)];
  const [name = "", groupName = ""] = imageUser.split(":", 2);
  const uid = isolation?.user ?? (name === "" ? 0 : (numberOf(name) ?? uidOf(name, layers)));
  // The image's group belongs to the image's user, and so does the one in its passwd file.
  const imageGroup = isolation?.user === undefined ? groupOf(groupName, layers) : undefined;
  const gid = isolation?.group ?? imageGroup ?? ownGroupOf(uid, layers) ?? 0;
  return { uid, gid, additionalGids };
}

function uidOf(name: string, layers: readonly string[]): number {
  const uid = numberOf(entryOf(layers, "/etc/passwd", (entry) => entry[0] === name)?.[2]);
  if (uid === undefined)
    throw new Error(`user ${name} of the image is not in its /etc/passwd: set runAsUser`);
  return uid;
}

function ownGroupOf(uid: number, layers: readonly string[]): number | undefined {
  return numberOf(entryOf(layers, "/etc/passwd", (entry) => numberOf(entry[2]) === uid)?.[3]);
}

function groupOf(name: string, layers: readonly string[]): number | undefined {
  if (name === "") return undefined;
  const known = numberOf(name);
  if (known !== undefined) return known;
  const gid = numberOf(entryOf(layers, "/etc/group", (entry) => entry[0] === name)?.[2]);
  if (gid === undefined)
    throw new Error(`group ${name} of the image is not in its /etc/group: set runAsGroup`);
  return gid;
}

/** The fields of the first line that is meant. */
function entryOf(
  layers: readonly string[],
  file: string,
  isMeant: (entry: readonly string[]) => boolean,
): string[] | undefined {
  for (const line of linesOfImage(layers, file)) {
    const entry = line.split(":", 4);
    if (isMeant(entry)) return entry;
  }
  return undefined;
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
