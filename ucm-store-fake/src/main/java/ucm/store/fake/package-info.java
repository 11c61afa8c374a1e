/**
 * The stores {@code Fake}, which remembers which blocks were dumped and moves no bytes, and
 * {@code Empty}, which has none. Ids go in, bits come out. They know no file and no device.
 */
package ucm.store.fake;
