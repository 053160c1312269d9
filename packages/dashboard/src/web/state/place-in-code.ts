/** A place in the user's own code that a message names, as runtimes write it. */
export interface Place {
  file: string;
  line: number;
}

/** Where a Function's code is in its image. */
const directory = String.raw`(?:[^\s"'()]*/usr/src/app/function/)?`;
const javascript = new RegExp(`${directory}((?:handler|index)\\.(?:m|c)?[jt]s):(\\d+)`);
const python = new RegExp(`File "${directory}([\\w/-]+\\.py)", line (\\d+)`, "g");

/** The place nearest to the error: the first in JavaScript, the last in Python. */
export function placeIn(message: string): Place | undefined {
  const found = javascript.exec(message) ?? [...message.matchAll(python)].at(-1);
  return found ? { file: found[1] ?? "", line: Number(found[2]) } : undefined;
}

/** A runtime's message without the directories in which the platform keeps the code. */
export const readable = (message: string): string =>
  message.replaceAll(/(?:file:\/\/)?[^\s"'()]*\/usr\/src\/app\/function\//g, "");
