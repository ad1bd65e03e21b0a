#!/bin/sh
# Keys and certificates for the tests of nodetool over TLS, written as PEM into a directory.
#
#   certificates.sh DIR ADDRESS
#
#   ca.pem, other.pem   two authorities
#   node.pem            key and certificate of ca, for ADDRESS
#   operator.pem        key and certificate of ca, for no address
#   stranger.pem        key and certificate of the other authority
set -eu
cd "$1"
for ca in ca other; do
  openssl req -x509 -newkey ed25519 -nodes -keyout $ca.key -out $ca.pem -subj "/CN=$ca" -days 3650 \
    -addext basicConstraints=critical,CA:TRUE 2> log || { cat log >&2; exit 1; }
done
make() { # name, authority, alternative name
  printf 'subjectAltName=%s\n' "$3" > ext
  openssl req -newkey ed25519 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> log
  openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -out "$1.crt" -days 3650 -extfile ext 2> log
  cat "$1.key" "$1.crt" > "$1.pem"
}
make node ca "IP:$2"
make operator ca DNS:operator
make stranger other DNS:operator
