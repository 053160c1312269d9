import { essenceOf, mediaTypeOf } from "../media-type.ts";

const limits = { headerLength: 4096 };

interface Choice {
  value: string;
  quality: number;
}

/** How good an offer is to one choice of the client's, 0 for not at all: the most exact choice decides. */
type Fit = (offer: string, choice: string) => number;

const fits = {
  type: (offer: string, choice: string) => {
    const type = mediaTypeOf(offer);
    if (type === choice) return 3;
    if (`${type.split("/", 1)[0]}/*` === choice) return 2;
    return choice === "*/*" ? 1 : 0;
  },
  /** `en` stands for `en-GB` too, in either place (RFC 4647, section 3.3). */
  language: (offer: string, choice: string) => {
    const language = offer.toLowerCase();
    if (language === choice) return 4;
    if (language.startsWith(`${choice}-`)) return 3;
    if (choice.startsWith(`${language}-`)) return 2;
    return choice === "*" ? 1 : 0;
  },
  word: (offer: string, choice: string) => {
    if (offer.toLowerCase() === choice) return 2;
    return choice === "*" ? 1 : 0;
  },
} satisfies Record<string, Fit>;

/**
 * Proactive negotiation of RFC 9110, section 12.5: the offer that the client likes best, the first of
 * equals; false when it wants none of them. Without offers: what it wants, the best first.
 */
function negotiate(
  header: string | undefined,
  offers: readonly string[],
  fit: Fit,
  everything: string,
): string | string[] | false {
  const choices = header === undefined ? [{ value: everything, quality: 1 }] : readChoices(header);
  if (offers.length === 0) {
    const wanted = choices.filter(({ quality }) => quality > 0);
    return wanted.toSorted((a, b) => b.quality - a.quality).map(({ value }) => value);
  }
  let best: Choice | undefined;
  for (const value of offers) {
    const quality = qualityOf(value, choices, fit);
    if (quality > (best?.quality ?? 0)) best = { value, quality };
  }
  return best?.value ?? false;
}

function readChoices(header: string): Choice[] {
  return header
    .slice(0, limits.headerLength)
    .split(",")
    .filter((text) => text.trim() !== "")
    .map((text) => {
      const quality = /;\s*q\s*=\s*([\d.]+)/i.exec(text)?.[1];
      return { value: essenceOf(text), quality: quality === undefined ? 1 : Number(quality) };
    });
}

function qualityOf(offer: string, choices: readonly Choice[], fit: Fit): number {
  let [closest, quality] = [0, 0];
  for (const choice of choices) {
    const closeness = fit(offer, choice.value);
    if (closeness > closest) [closest, quality] = [closeness, choice.quality];
  }
  return quality;
}

export const acceptedTypes = (header: string | undefined, offers: readonly string[]) =>
  negotiate(header, offers, fits.type, "*/*");

export const acceptedLanguages = (header: string | undefined, offers: readonly string[]) =>
  negotiate(header, offers, fits.language, "*");

export const acceptedCharsets = (header: string | undefined, offers: readonly string[]) =>
  negotiate(header, offers, fits.word, "*");

/** What is not encoded is welcome to everybody who does not say otherwise. */
export function acceptedEncodings(header: string | undefined, offers: readonly string[]) {
  const isNamed = /(?:^|[,\s])(?:identity|\*)/i.test(header ?? "");
  const all = isNamed ? header : [header, "identity;q=0.001"].filter(Boolean).join(", ");
  return negotiate(all, offers, fits.word, "*");
}
