/**
 * Room: bytes in use, the capacity, the floor of free space. Reservations go in and are granted
 * or refused. It removes nothing.
 */
package ucm.store.file.space;
