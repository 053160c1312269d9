/** Of disks and files, for people: `812 MiB`, `76.1 GiB`. */
export function sizeText(bytes: number): string {
  const inMiB = bytes / 2 ** 20;
  return inMiB >= 1024 ? `${(inMiB / 1024).toFixed(1)} GiB` : `${inMiB.toFixed(0)} MiB`;
}
