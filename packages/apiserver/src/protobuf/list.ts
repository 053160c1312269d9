import { Encoder } from "./encoder.ts";
import { type Message, messageNamed, messageOfKind } from "./messages.ts";
import { encodeProtobuf, type TypedObject, writeEnvelope } from "./protobuf.ts";
import { wire } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";
import { type EncodingTurns } from "../http/encoding-turns.ts";
import { parseJson } from "../json.ts";

/** The JSON texts of a list's items. */
interface Items {
  readonly count: number;
  at(index: number): string;
}

/** Of a list, made piece by piece. */
export interface ListPieces {
  /** Of all pieces together. */
  length: number;
  pieces: Iterable<Uint8Array>;
}

/** A list that takes no more is not made twice. */
const keptBytes = 1024 * 1024;

/**
 * A list in protobuf as it would be alone, item by item. A message begins with its length: the items are made once to be measured,
 * and again, unless they are few, when they are sent. When the signal is aborted, what is made is not read any more. `list` has no items yet; its kind must be one that `hasProtobuf`.
 */
export async function encodeList(
  list: TypedObject,
  items: Items,
  turns: EncodingTurns,
  signal?: AbortSignal,
): Promise<ListPieces> {
  const message = messageOfKind(list.apiVersion, list.kind);
  const [field] = message?.fields ?? [];
  // The items come last, and the fields are in reverse.
  if (!message || field?.name !== "items" || field.type !== "message") {
    const whole = { ...list, items: textsOf(items).map((text) => parseJson(text)) };
    const bytes = encodeProtobuf(whole);
    return { length: bytes.length, pieces: [bytes] };
  }
  const pieceOf = itemPiece(messageNamed(field.message), field.number);
  let itemBytes = 0;
  let kept: Uint8Array[] | undefined = [];
  for (let index = 0; index < items.count; index++) {
    const text = items.at(index);
    const turn = turns.before(text.length);
    if (turn) {
      await turn;
      if (signal?.aborted) break;
    }
    const piece = pieceOf(text);
    itemBytes += piece.length;
    if (itemBytes > keptBytes) kept = undefined;
    kept?.push(piece);
  }
  const [before, after] = frameOf(list, message, itemBytes);
  const pieces = function* () {
    yield before;
    if (kept) yield* kept;
    else for (let index = 0; index < items.count; index++) yield pieceOf(items.at(index));
    yield after;
  };
  return {
    length: before.length + itemBytes + after.length,
    pieces: { [Symbol.iterator]: pieces },
  };
}

function itemPiece(message: Message, number: number): (text: string) => Uint8Array {
  return (text) => {
    const writer = new WireWriter();
    const object = parseJson(text) as Record<string, unknown>;
    writer.delimited(() => new Encoder(writer).message(message, object));
    writer.tag(number, wire.delimited);
    return writer.finish();
  };
}

/** What stands around the items. */
function frameOf(list: TypedObject, message: Message, itemBytes: number): [Buffer, Buffer] {
  const head = new WireWriter();
  new Encoder(head).message(message, { ...list, items: [] });
  const headBytes = head.finish();
  const writer = new WireWriter();
  let afterBytes = 0;
  writeEnvelope(writer, list, () => {
    afterBytes = writer.length;
    writer.bytes(headBytes);
    writer.varint(headBytes.length + itemBytes);
  });
  const bytes = writer.finish();
  const middle = bytes.length - afterBytes;
  return [bytes.subarray(0, middle), bytes.subarray(middle)];
}

function textsOf(items: Items): string[] {
  return Array.from({ length: items.count }, (_, index) => items.at(index));
}
