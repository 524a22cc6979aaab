import { useEffect, useState } from 'preact/hooks';

/** A value that tells its readers when it changes. */
export class Store<T> {
  private readers = new Set<() => void>();
  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const read of [...this.readers]) read();
  }

  subscribe(read: () => void): () => void {
    this.readers.add(read);
    return () => this.readers.delete(read);
  }
}

/** The store's value; the component renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  useEffect(() => {
    render({});
    return store.subscribe(() => render({}));
  }, [store]);
  return store.get();
}
