#!/bin/sh
# Certificates for the tests, printed to stdout as `== NAME` and PEM: keys with their certificates, and what certifies them.
#
#   ca, other-ca     two authorities
#   one two three    of ca, for 10.0.0.1, .2, .3, good for ten years
#   stranger         of other-ca, for 10.0.0.1
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for ca in ca other-ca; do
  openssl req -x509 -newkey ed25519 -nodes -keyout $ca.key -out $ca.crt -subj "/CN=$ca" -days 3650 \
    -addext basicConstraints=critical,CA:TRUE 2> log || { cat log >&2; exit 1; }
  echo "== $ca"; cat $ca.crt
done
make() { # name, authority, address
  printf 'subjectAltName=IP:%s\n' "$3" > ext
  openssl req -newkey ed25519 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> log
  openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -out "$1.crt" -days 3650 -extfile ext 2> log
  echo "== $1"; cat "$1.key" "$1.crt"
}
make one ca 10.0.0.1
make two ca 10.0.0.2
make three ca 10.0.0.3
make stranger other-ca 10.0.0.1
echo "== now"; date +%s
