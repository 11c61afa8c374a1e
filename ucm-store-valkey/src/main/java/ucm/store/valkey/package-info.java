/**
 * A store that keeps blocks in Valkey, as a third party writes it. Shards go in, commands of the
 * Redis protocol come out. Copy from it.
 */
package ucm.store.valkey;
