"""The contract: Avro schemas, records, codecs, ports and the query tree."""
