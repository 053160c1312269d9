import { isAscii } from "node:buffer";

/** What a text of so many bytes takes of the heap: two bytes a character if one of them needs that. */
export const textSize = {
  mostTimes: 2,
  most: (body: Uint8Array) => (isAscii(body) ? 1 : 2) * body.length,
};

/** What JSON becomes at most, with its text and those in it. */
export const jsonSize = {
  mostTimes: 50,
  most: (body: Uint8Array) => 2 * textSize.most(body) + valuesSize(body),
};

/** By its signs: an object with a key that no other object has, a list, a value. */
function valuesSize(json: Uint8Array): number {
  let total = 0;
  for (const byte of json) {
    if (byte === 0x2c) total += 16;
    else if (byte === 0x3a) total += 144;
    else if (byte === 0x7b) total += 64;
    else if (byte === 0x5b) total += 56;
  }
  return total;
}
