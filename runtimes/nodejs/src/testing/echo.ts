/** Answers with what it was given, as JSON that shows types. */
export const echo = `
const show = (value) => value === undefined ? "absent" : Buffer.isBuffer(value) ? { bytes: value.toString("hex") } : value;
module.exports = { main: (event) => {
  const { data, tracer, extensions, ...rest } = event;
  const attributes = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value !== "function"));
  return { data: show(data), ...attributes };
} };`;
