/** The key of what a user types: the same for the same user, and another one for everyone else. */
import { describe, expect, test } from "vitest";
import { type Transport } from "@spry/kube";
import { draftKeyOf } from "./draft-keys.ts";

/** An API server that answers for one user. */
const asUser =
  (
    username: string,
    { uid = "", platform = "p-1" }: { uid?: string; platform?: string } = {},
  ): Transport =>
  async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/selfsubjectreviews"))
      return username === ""
        ? new Response("{}", { status: 404 })
        : Response.json({ status: { userInfo: { username, uid } } }, { status: 201 });
    if (pathname === "/api/v1/namespaces/kube-system" && platform !== "")
      return Response.json({ metadata: { uid: platform } });
    return new Response("{}", { status: 403 });
  };

describe("the key of drafts", () => {
  test("is the same for each login of a user, and has 32 bytes", async () => {
    const first = await draftKeyOf(asUser("anna"), "secret");
    expect(await draftKeyOf(asUser("anna"), "secret")).toEqual(first);
    expect(Buffer.from(first.key, "base64").length).toBe(32);
    expect(first.platform).toBe("p-1");
    expect(JSON.stringify(first)).not.toContain("anna");
  });

  test("differs by user, by user's uid, by platform and by secret", async () => {
    const all = await Promise.all([
      draftKeyOf(asUser("anna"), "secret"),
      draftKeyOf(asUser("ben"), "secret"),
      draftKeyOf(asUser("anna", { uid: "u" }), "secret"),
      draftKeyOf(asUser("anna", { platform: "p-2" }), "secret"),
      draftKeyOf(asUser("anna", { platform: "" }), "secret"),
      draftKeyOf(asUser("anna"), "another secret"),
    ]);
    expect(new Set(all.map(({ key }) => key)).size).toBe(all.length);
    const [anna, ben, again, elsewhere, unseen, other] = all.map((each) => each.user);
    expect(new Set([anna, ben, again, other]).size).toBe(4);
    expect([elsewhere, unseen]).toEqual([anna, anna]);
  });

  test("is not given where the API server names no user", async () => {
    await expect(draftKeyOf(asUser(""), "secret")).rejects.toMatchObject({ status: 503 });
    const away: Transport = () => Promise.reject(new Error("away"));
    await expect(draftKeyOf(away, "secret")).rejects.toMatchObject({ status: 502 });
  });
});
