//! What nodetool sends a node: a login, before anybody is known, and a request.

use admin::wire::{
    MAX_ARGS, MAX_LOGIN, decode_login, decode_outcome, decode_request, encode_login, encode_request,
};

/// A line of the operator's protocol, in each of its meanings.
pub fn lines(line: &[u8]) {
    if let Some(login) = decode_login(line) {
        assert!(line.len() <= MAX_LOGIN, "a login longer than its limit");
        // what was escaped may be written down longer, and is refused then
        if let Ok(again) = encode_login(&login) {
            assert!(decode_login(again.trim_end().as_bytes()) == Some(login), "another login");
        }
        assert!(decode_request(line).is_err(), "a login that is a request, too");
    }
    if let Ok(args) = decode_request(line) {
        assert!(args.len() <= MAX_ARGS, "more arguments than their limit");
        if let Ok(again) = encode_request(&args) {
            assert_eq!(decode_request(again.trim_end().as_bytes()), Ok(args.clone()));
        }
        let _ = admin::Verb::parse(&args);
    }
    let _ = decode_outcome(line);
}
