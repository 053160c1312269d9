import { type TrafficShare } from "@spry/function/browser";

/** One version gets `percent`; the others share the rest in their present proportions. The sum is 100. */
export function shared(shares: TrafficShare[], index: number, percent: number): TrafficShare[] {
  const others = shares.filter((_, at) => at !== index);
  const before = others.reduce((sum, { percent = 0 }) => sum + percent, 0);
  let rest = 100 - percent;
  let left = others.length;
  return shares.map((share, at) => {
    if (at === index) return { ...share, percent };
    left--;
    const part = before === 0 ? 1 / others.length : (share.percent ?? 0) / before;
    const own = left === 0 ? rest : Math.min(Math.round((100 - percent) * part), rest);
    rest -= own;
    return { ...share, percent: own };
  });
}
