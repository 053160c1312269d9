/** Before the files of test/attacks: their platforms start from a template, as those of test/e2e do. */
import { offerTemplate } from "./offer-template.ts";

export default function setup(): (() => Promise<void>) | undefined {
  return offerTemplate();
}
