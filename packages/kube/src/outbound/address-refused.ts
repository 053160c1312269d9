/** An address is not called. Nothing has been connected to, and the message is the same whether something listens there or not. */
export class AddressRefusedError extends Error {
  override readonly name = "AddressRefusedError";
}
