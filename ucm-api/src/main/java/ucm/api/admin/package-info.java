/**
 * What a store may offer to people beside its work: health checks, directories and what is in
 * them. A configuration goes in, findings and records come out. No open store is needed.
 */
package ucm.api.admin;
