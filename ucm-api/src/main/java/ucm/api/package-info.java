/**
 * The contract between those who move KV-cache blocks and those who keep them. {@link
 * ucm.api.Store} is the service; everything else is a value that goes in or comes out of a store.
 * It knows no implementation.
 */
package ucm.api;
