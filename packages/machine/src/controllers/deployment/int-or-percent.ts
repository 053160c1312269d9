/** A number, or a percentage of `total`; a fraction is rounded up or down as the caller needs. */
export function scaledValue(
  value: string | number | undefined,
  total: number,
  round: "up" | "down",
): number {
  if (typeof value === "number") return value;
  const percent = /^(\d{1,9})%$/.exec(value ?? "")?.[1];
  if (percent === undefined) return 0;
  const exact = (Number(percent) * total) / 100;
  return round === "up" ? Math.ceil(exact) : Math.floor(exact);
}
