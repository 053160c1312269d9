import { inspect } from "node:util";

type Constructor = abstract new (...args: never[]) => object;

/**
 * Gives a stand-in all members of the native class that it has none for, and makes it look like that
 * class: `instanceof`, its name, and what `console.log` shows. `toNative` makes the native object of
 * one of ours, and returns any other as it is.
 */
export function delegateTo(
  ours: Constructor,
  options: {
    name: string;
    members: readonly string[];
    methods: readonly string[];
    toNative: (value: object) => object;
    native: () => Constructor;
  },
): void {
  const { name, members, methods, toNative, native } = options;
  const prototype = ours.prototype as object;
  Object.defineProperty(ours, "name", { value: name });
  for (const member of members) {
    Object.defineProperty(prototype, member, {
      configurable: true,
      get(this: object): unknown {
        const object = toNative(this);
        return Reflect.get(native().prototype as object, member, object);
      },
    });
  }
  for (const method of methods) {
    const call = function (this: object, ...args: unknown[]): unknown {
      const object = toNative(this);
      return (Reflect.get(native().prototype as object, method) as Method).apply(object, args);
    };
    Object.defineProperty(prototype, method, { value: call, configurable: true, writable: true });
  }
  for (const key of Object.getOwnPropertyNames(prototype))
    if (key !== "constructor") Object.defineProperty(prototype, key, { enumerable: true });
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  Object.defineProperty(prototype, inspect.custom, {
    value(this: object, _depth: number, inspection: object) {
      return inspect(toNative(this), inspection);
    },
  });
  Object.defineProperty(ours, Symbol.hasInstance, {
    value(this: Constructor, value: unknown): boolean {
      const isOrdinary = Function.prototype[Symbol.hasInstance].call(this, value);
      if (isOrdinary || this !== ours) return isOrdinary;
      // The tag is asked first: for nothing else need the native class be loaded.
      const tag = (value as Record<symbol, unknown> | null | undefined)?.[Symbol.toStringTag];
      return tag === name && value instanceof native();
    },
  });
}

type Method = (this: object, ...args: unknown[]) => unknown;
