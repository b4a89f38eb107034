// SPDX-License-Identifier: Apache-2.0

import BatonMessages

extension WireDictionaryValue {
    /// The same with every URL in it, however deep, replaced by what `replace` makes of it.
    ///
    /// The order is that of the keys, so that "the first" URL is the same one every time. Messages nest at most
    /// ``BatonMessages/MessageLimits/depth`` deep.
    ///
    /// - Parameter replace: is given the URL and its key, as in `files[2].place`.
    func replacingURLs(
        _ replace: (_ url: String, _ key: String) throws(HandoffError) -> String
    ) throws(HandoffError) -> WireDictionaryValue {
        try replacingURLs(beneath: "", replace)
    }

    /// Whether there is such a URL, however deep.
    func containsURL(where isWanted: (String) -> Bool) -> Bool {
        var isThere = false
        _ = try? replacingURLs { (url, _) throws(HandoffError) in
            isThere = isThere || isWanted(url)
            return url
        }
        return isThere
    }

    fileprivate func replacingURLs(
        beneath path: String, _ replace: (String, String) throws(HandoffError) -> String
    ) throws(HandoffError) -> WireDictionaryValue {
        // A device may send thousands of keys: each is looked at once, and none is hashed.
        var replaced = pairs
        let order = pairs.indices.sorted { pairs[$0].key.utf8.lexicographicallyPrecedes(pairs[$1].key.utf8) }
        for index in order {
            let key = pairs[index].key
            replaced[index].value = try pairs[index].value.replacingURLs(
                at: path.isEmpty ? key : "\(path).\(key)", replace)
        }
        var result = self
        result.pairs = replaced
        return result
    }
}

extension WireValue {
    fileprivate func replacingURLs(
        at path: String, _ replace: (String, String) throws(HandoffError) -> String
    ) throws(HandoffError) -> WireValue {
        var result = self
        switch kind {
        case .url(let url): result.url = try replace(url, path)
        case .array(let list): result.array = try list.replacingURLs(replace) { "\(path)[\($0)]" }
        case .set(let list): result.set = try list.replacingURLs(replace) { _ in "\(path)[]" }
        case .dictionary(let dictionary): result.dictionary = try dictionary.replacingURLs(beneath: path, replace)
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .uuid, nil: break
        }
        return result
    }
}

extension WireArrayValue {
    fileprivate func replacingURLs(
        _ replace: (String, String) throws(HandoffError) -> String, key: (Int) -> String
    ) throws(HandoffError) -> WireArrayValue {
        var replaced = elements
        for index in elements.indices { replaced[index] = try elements[index].replacingURLs(at: key(index), replace) }
        var result = self
        result.elements = replaced
        return result
    }
}
