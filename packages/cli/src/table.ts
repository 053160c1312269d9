/** Rows below a header, in columns as wide as their widest cell. */
export function tableLines(header: readonly string[], rows: readonly string[][]): string[] {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("   ")
      .trimEnd(),
  );
}

/** Leaves out what `optional` names, one after the other, until the lines fit into `columns`. */
export function fittingTable(
  header: readonly string[],
  rows: readonly string[][],
  { columns, optional }: { columns: number | undefined; optional: readonly string[] },
): string[] {
  const lines = tableLines(header, rows);
  const [next, ...others] = optional;
  const fits = columns === undefined || lines.every((line) => line.length <= columns);
  if (fits || next === undefined) return lines;
  const at = header.indexOf(next);
  const without = (row: readonly string[]) => row.filter((_cell, column) => column !== at);
  return fittingTable(without(header), rows.map(without), { columns, optional: others });
}
