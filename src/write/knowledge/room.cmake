# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} knowledge_synonyms src/write/knowledge/synonyms.toml)
