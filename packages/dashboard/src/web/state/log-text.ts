/** Makes the output of Functions fit to be shown. */
/* oxlint-disable no-control-regex -- control characters are what is taken out */

const sequences =
  /\u001b(?:\[[\d;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** The last ones change the direction of text. */
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Without the sequences by which programs colour terminals, and without other control characters. */
export function printable(text: string): string {
  const plain = text.replaceAll(sequences, "");
  // What a program writes after `\r` is over what was there, as in a terminal: the last progress of many.
  const [last = ""] = plain.split("\r").filter(Boolean).slice(-1);
  return (plain.includes("\n") ? plain : last).replaceAll(controls, "");
}

export type LogLevel = "error" | "warn" | "info";

/** From the level in a structured line, or from the words that loggers and stack traces use. */
export function levelOf(text: string): LogLevel {
  const named =
    /"(?:level|severity|levelname)"\s*:\s*"?(\w+)/i.exec(text)?.[1] ??
    /^\W*(?:\S+\s){0,3}?\[?(error|fatal|critical|warn|warning)\b/i.exec(text)?.[1] ??
    /\b(\w*Error|Traceback)\b/.exec(text)?.[1] ??
    "";
  if (/error|fatal|critical|traceback|^[56]0$/i.test(named)) return "error";
  return /^warn|^40$/i.test(named) ? "warn" : "info";
}
