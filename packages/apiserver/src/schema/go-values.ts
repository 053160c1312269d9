/** How Go parses strings that stand for other things: times and bytes. Problems are reported in Go's words. */

const timeLayout = "2006-01-02T15:04:05Z07:00";
const microTimeLayout = "2006-01-02T15:04:05.000000Z07:00";
const timeParts: [RegExp, string][] = [
  [/^\d{4}/, "2006"],
  [/^-/, "-"],
  [/^\d{2}/, "01"],
  [/^-/, "-"],
  [/^\d{2}/, "02"],
  [/^T/, "T"],
  [/^\d{1,2}/, "15"],
  [/^:/, ":"],
  [/^\d{2}/, "04"],
  [/^:/, ":"],
  [/^\d{2}(?:\.\d+)?/, "05"],
  [/^(?:Z|[+-]\d{2}:\d{2})/, "Z07:00"],
];
const limits: [RegExp, string][] = [
  [/^\d{4}-(?!0[1-9]|1[0-2])/, "month out of range"],
  [/T(?!\d:|[01]\d|2[0-3])/, "hour out of range"],
  [/T\d+:[6-9]/, "minute out of range"],
  [/T\d+:\d\d:[6-9]/, "second out of range"],
];

/** As times are nearly always written, and stored as they are; days that not every month has take the long way. */
const plainTime =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/;

/** The time as it is stored (whole seconds, or millionths, UTC). Throws an `Error` for anything that is not a time. */
export function storedTime(text: string, micro: boolean): string {
  if (!micro && plainTime.test(text)) return text;
  const layout = micro ? microTimeLayout : timeLayout;
  const parsing = `parsing time ${JSON.stringify(text)}`;
  let rest = text;
  for (const [pattern, piece] of timeParts) {
    const found = pattern.exec(rest);
    if (!found) {
      throw new Error(
        `${parsing} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(piece)}`,
      );
    }
    rest = rest.slice(found[0].length);
  }
  if (rest !== "") throw new Error(`${parsing}: extra text: ${JSON.stringify(rest)}`);
  for (const [pattern, problem] of limits) {
    if (pattern.test(text)) throw new Error(`${parsing}: ${problem}`);
  }
  const time = new Date(text.replace(/T(\d):/, "T0$1:"));
  const day = Number(text.slice(8, 10));
  const daysOfMonth = new Date(Number(text.slice(0, 4)), Number(text.slice(5, 7)), 0).getDate();
  if (Number.isNaN(time.getTime()) || day < 1 || day > daysOfMonth) {
    throw new Error(`${parsing}: day out of range`);
  }
  const seconds = time.toISOString().slice(0, 19);
  if (!micro) return `${seconds}Z`;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  return `${seconds}.${fraction.slice(0, 6).padEnd(6, "0")}Z`;
}

/** Base64 (RFC 4648, padded; line breaks do not count) as it is stored. Throws an `Error` for what is none. */
export function storedBytes(text: string): string {
  const clean = text.replaceAll(/[\r\n]/g, "");
  const bad = clean.search(/[^A-Za-z0-9+/=]/);
  const padding = clean.indexOf("=");
  const misplaced = padding >= 0 && !/^={1,2}$/.test(clean.slice(padding));
  if (bad >= 0) throw illegalBase64(padding >= 0 && padding < bad ? padding : bad);
  if (misplaced) throw illegalBase64(padding % 4 < 2 ? padding : padding + 1);
  if (clean.length % 4 !== 0) {
    throw illegalBase64(padding >= 0 ? clean.length : clean.length - (clean.length % 4));
  }
  if (padding >= 0 && padding % 4 < 2) throw illegalBase64(padding);
  return clean;
}

function illegalBase64(index: number): Error {
  return new Error(`illegal base64 data at input byte ${index}`);
}
