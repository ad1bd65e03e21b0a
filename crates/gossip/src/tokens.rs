//! TOKENS (`gms.TokenSerializer`): the tokens that a node owns, as bytes of which each is a
//! character.

use types::{ReadError, Reader, Token, WriteBytes};

/// Bytes of a token.
const TOKEN: usize = 8;

/// The value for tokens.
pub fn write_tokens(tokens: &[Token]) -> String {
    let mut bytes = Vec::with_capacity(tokens.len() * (TOKEN + 4) + 4);
    for token in tokens {
        bytes.put_int_bytes(&token.0.to_be_bytes());
    }
    bytes.put_i32(0);
    bytes.into_iter().map(char::from).collect()
}

/// The tokens of a value.
pub fn read_tokens(value: &str) -> Result<Vec<Token>, ReadError> {
    let bytes: Result<Vec<u8>, _> = value.chars().map(|c| u8::try_from(u32::from(c))).collect();
    let bytes = bytes.map_err(|_| ReadError::Text)?;
    let mut reader = Reader::new(&bytes);
    let mut tokens = Vec::new();
    loop {
        let token = reader.int_bytes()?;
        match token.as_array::<TOKEN>() {
            Some(token) => tokens.push(Token(i64::from_be_bytes(*token))),
            None if token.is_empty() => return Ok(tokens),
            None => return Err(ReadError::Length(token.len() as i64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let tokens = [i64::MIN, -1, 0, 0x80ff_0102_0304_0506_u64.cast_signed(), i64::MAX];
        let tokens = tokens.map(Token);
        assert_eq!(read_tokens(&write_tokens(&tokens)).as_deref(), Ok(&tokens[..]));
        assert_eq!(read_tokens("\0\0\0\0"), Ok(vec![]));
        for bad in
            ["", "\0\0\0\u{8}1234567", "\0\0\0\u{1}1", "\0\0\0\u{100}", "\u{ff}\u{ff}\u{ff}\u{ff}"]
        {
            assert!(read_tokens(bad).is_err(), "{bad:?}");
        }
    }
}
